#include "perf/record.hpp"

#include <algorithm>
#include <bit>

namespace nearfar::perf {

namespace {

/// PERF_SAMPLE_BRANCH_COUNTERS, since Linux 6.8, which the headers of Debian 12 lack.
constexpr std::uint64_t sample_branch_counters = 1u << 19;

/// The fields of a sample_id, 8 bytes each.
constexpr std::uint64_t identity_fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                          PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
                                          PERF_SAMPLE_IDENTIFIER;

/// The fields of a sample before SAMPLE_ID, 8 bytes each.
constexpr std::uint64_t before_id =
    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;

std::uint16_t mode_of(const perf_event_header& header) {
  return header.misc & PERF_RECORD_MISC_CPUMODE_MASK;
}

bool in_user_mode(const perf_event_header& header) {
  return mode_of(header) == PERF_RECORD_MISC_USER || mode_of(header) == PERF_RECORD_MISC_GUEST_USER;
}

/// A record cut into its parts.
struct Parts {
  perf_event_header header{};
  ByteSpan body;
  ByteSpan identity; ///< the sample_id at the end, empty if there is none
};

Error malformed(const perf_event_header& header, const char* problem) {
  return Error::make(Errc::bad_input, "record of type %u and size %u %s", header.type, header.size,
                     problem);
}

Result<Parts> split(const perf_event_attr& attr, ByteSpan bytes) {
  Fields fields(bytes);
  Parts parts;
  parts.header = fields.read<perf_event_header>();
  if (!fields.ok() || parts.header.size < sizeof parts.header || parts.header.size > bytes.size())
    return malformed(parts.header, "does not fit in its bytes");
  parts.body = bytes.first(parts.header.size).subspan(sizeof parts.header);
  if (parts.header.type == PERF_RECORD_SAMPLE || parts.header.type >= first_file_record ||
      !attr.sample_id_all)
    return parts;
  const auto size = 8 * static_cast<std::size_t>(std::popcount(attr.sample_type & identity_fields));
  if (size > parts.body.size()) return malformed(parts.header, "is too short for its sample_id");
  parts.identity = parts.body.last(size);
  parts.body = parts.body.first(parts.body.size() - size);
  return parts;
}

SampleId decode_identity(const perf_event_attr& attr, ByteSpan bytes) {
  SampleId identity;
  if (bytes.empty()) return identity;
  Fields fields(bytes);
  const auto has = [&](std::uint64_t field) { return (attr.sample_type & field) != 0; };
  if (has(PERF_SAMPLE_TID)) {
    identity.pid = fields.u32();
    identity.tid = fields.u32();
  }
  if (has(PERF_SAMPLE_TIME)) identity.time = fields.u64();
  if (has(PERF_SAMPLE_ID)) identity.id = fields.u64();
  if (has(PERF_SAMPLE_STREAM_ID)) fields.u64();
  if (has(PERF_SAMPLE_CPU)) {
    identity.cpu = fields.u32();
    fields.u32();
  }
  if (has(PERF_SAMPLE_IDENTIFIER)) identity.id = fields.u64();
  return identity;
}

/// Fields of a sample in the order of the kernel; each function reads a run of them.
class SampleDecoder {
public:
  SampleDecoder(const perf_event_attr& attr, ByteSpan body) : attr_(attr), in_(body) {
    sample_.fields = attr.sample_type;
    if (attr.freq == 0) sample_.period = attr.sample_period;
  }

  bool decode(Sample& sample) {
    read_identity();
    if (has(PERF_SAMPLE_READ)) skip_counters();
    if (has(PERF_SAMPLE_CALLCHAIN)) in_.skip_array(in_.u64(), 8);
    if (has(PERF_SAMPLE_RAW)) sample_.raw = in_.take(in_.u32());
    if (has(PERF_SAMPLE_BRANCH_STACK)) skip_branches();
    if (has(PERF_SAMPLE_REGS_USER)) sample_.user_registers = read_registers(attr_.sample_regs_user);
    if (has(PERF_SAMPLE_STACK_USER)) skip_stack();
    read_memory_access();
    skip_rest();
    sample = sample_;
    return in_.ok();
  }

private:
  bool has(std::uint64_t field) const { return sample_.has(field); }

  void read_identity() {
    if (has(PERF_SAMPLE_IDENTIFIER)) sample_.id = in_.u64();
    if (has(PERF_SAMPLE_IP)) sample_.ip = in_.u64();
    if (has(PERF_SAMPLE_TID)) {
      sample_.pid = in_.u32();
      sample_.tid = in_.u32();
    }
    if (has(PERF_SAMPLE_TIME)) sample_.time = in_.u64();
    if (has(PERF_SAMPLE_ADDR)) sample_.addr = in_.u64();
    if (has(PERF_SAMPLE_ID)) sample_.id = in_.u64();
    if (has(PERF_SAMPLE_STREAM_ID)) in_.u64();
    if (has(PERF_SAMPLE_CPU)) {
      sample_.cpu = in_.u32();
      in_.u32();
    }
    if (has(PERF_SAMPLE_PERIOD)) sample_.period = in_.u64();
  }

  void skip_counters() {
    const auto asked = [&](std::uint64_t bit) { return (attr_.read_format & bit) != 0 ? 8u : 0u; };
    const std::uint64_t times =
        asked(PERF_FORMAT_TOTAL_TIME_ENABLED) + asked(PERF_FORMAT_TOTAL_TIME_RUNNING);
    const std::uint64_t counter = 8u + asked(PERF_FORMAT_ID) + asked(PERF_FORMAT_LOST);
    const std::uint64_t counters = asked(PERF_FORMAT_GROUP) != 0 ? in_.u64() : 1;
    in_.skip(times);
    in_.skip_array(counters, counter);
  }

  void skip_branches() {
    const std::uint64_t count = in_.u64();
    if ((attr_.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX) != 0) in_.u64();
    in_.skip_array(count, sizeof(perf_branch_entry));
    if ((attr_.branch_sample_type & sample_branch_counters) != 0) in_.skip_array(count, 8);
  }

  Registers read_registers(std::uint64_t mask) {
    Registers registers;
    registers.abi = in_.u64();
    if (registers.abi == PERF_SAMPLE_REGS_ABI_NONE) return registers;
    for (; mask != 0; mask &= mask - 1) {
      const auto number = static_cast<unsigned>(std::countr_zero(mask));
      const std::uint64_t value = in_.u64();
      if (number >= Registers::count) continue; // halves of vector registers
      registers.values[number] = value;
      registers.present |= 1u << number;
    }
    return registers;
  }

  void skip_stack() {
    const std::uint64_t size = in_.u64();
    in_.skip(size);
    if (size != 0) in_.u64(); // how much of it was filled
  }

  void read_memory_access() {
    if (has(PERF_SAMPLE_WEIGHT))
      sample_.weight = in_.u64();
    else if (has(PERF_SAMPLE_WEIGHT_STRUCT))
      sample_.weight = in_.u64() & UINT32_MAX;
    if (has(PERF_SAMPLE_DATA_SRC)) sample_.data_src = in_.u64();
    if (has(PERF_SAMPLE_TRANSACTION)) in_.u64();
    if (has(PERF_SAMPLE_REGS_INTR)) read_registers(attr_.sample_regs_intr);
    if (has(PERF_SAMPLE_PHYS_ADDR)) sample_.phys_addr = in_.u64();
  }

  void skip_rest() {
    for (const std::uint64_t field :
         {PERF_SAMPLE_CGROUP, PERF_SAMPLE_DATA_PAGE_SIZE, PERF_SAMPLE_CODE_PAGE_SIZE})
      if (has(field)) in_.u64();
    if (has(PERF_SAMPLE_AUX)) in_.skip(in_.u64());
  }

  const perf_event_attr& attr_;
  Fields in_;
  Sample sample_;
};

/// State for decoding a record other than a sample: its body, and its sample_id, already decoded.
struct Context {
  const perf_event_header& header;
  Fields in;
  SampleId sample_id;
};

Mapping decode_mapping(Context& context) {
  Fields& in = context.in;
  Mapping mapping;
  mapping.sample_id = context.sample_id;
  mapping.executable = (context.header.misc & PERF_RECORD_MISC_MMAP_DATA) == 0;
  mapping.user_mode = in_user_mode(context.header);
  mapping.pid = in.u32();
  mapping.tid = in.u32();
  mapping.address = in.u64();
  mapping.length = in.u64();
  mapping.file_offset = in.u64();
  if (context.header.type == PERF_RECORD_MMAP2) {
    Fields object(in.take(24)); // a build id, or device, inode and generation
    const auto length = object.read<std::uint8_t>();
    object.skip(3);
    if ((context.header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0)
      mapping.build_id = object.take(std::min<std::uint64_t>(length, object.rest().size()));
    mapping.protection = in.u32();
    mapping.flags = in.u32();
  }
  mapping.file = in.text();
  return mapping;
}

Comm decode_comm(Context& context) {
  Comm comm;
  comm.sample_id = context.sample_id;
  comm.exec = (context.header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
  comm.pid = context.in.u32();
  comm.tid = context.in.u32();
  comm.name = context.in.text();
  return comm;
}

template <class Kind>
Kind decode_task(Context& context) {
  Kind task;
  task.sample_id = context.sample_id;
  task.pid = context.in.u32();
  task.parent_pid = context.in.u32();
  task.tid = context.in.u32();
  task.parent_tid = context.in.u32();
  task.time = context.in.u64();
  return task;
}

Throttle decode_throttle(Context& context) {
  Throttle throttle;
  throttle.sample_id = context.sample_id;
  throttle.starts = context.header.type == PERF_RECORD_THROTTLE;
  throttle.time = context.in.u64();
  throttle.id = context.in.u64();
  return throttle;
}

Record decode_other(Context& context) {
  Fields& in = context.in;
  switch (context.header.type) {
  case PERF_RECORD_MMAP:
  case PERF_RECORD_MMAP2: return decode_mapping(context);
  case PERF_RECORD_COMM: return decode_comm(context);
  case PERF_RECORD_FORK: return decode_task<Fork>(context);
  case PERF_RECORD_EXIT: return decode_task<Exit>(context);
  case PERF_RECORD_THROTTLE:
  case PERF_RECORD_UNTHROTTLE: return decode_throttle(context);
  case PERF_RECORD_LOST: {
    const std::uint64_t id = in.u64();
    return Lost{context.sample_id, id, in.u64()};
  }
  case PERF_RECORD_LOST_SAMPLES: return LostSamples{context.sample_id, in.u64()};
  default: return OtherRecord{context.sample_id, context.header.type};
  }
}

} // namespace

Result<Record> decode(const perf_event_attr& attr, ByteSpan bytes) {
  Result<Parts> parts = split(attr, bytes);
  if (!parts) return parts.error();
  const perf_event_header& header = parts->header;
  if (header.type == PERF_RECORD_SAMPLE) {
    Sample sample;
    if (!SampleDecoder(attr, parts->body).decode(sample))
      return malformed(header, "is too short for the fields of its event");
    sample.user_mode = in_user_mode(header);
    sample.exact_ip = (header.misc & PERF_RECORD_MISC_EXACT_IP) != 0;
    return Record(sample);
  }
  Context context{header, Fields(parts->body), decode_identity(attr, parts->identity)};
  Record record = decode_other(context);
  if (!context.in.ok()) return malformed(header, "is too short for its fields");
  return record;
}

std::optional<std::uint64_t> event_id(const perf_event_attr& attr, ByteSpan bytes) {
  constexpr std::uint64_t ids = PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER;
  Result<Parts> parts = split(attr, bytes);
  if (!parts || (attr.sample_type & ids) == 0) return std::nullopt;
  if (parts->header.type != PERF_RECORD_SAMPLE) {
    if (parts->identity.empty()) return std::nullopt;
    return decode_identity(attr, parts->identity).id;
  }
  const bool first = (attr.sample_type & PERF_SAMPLE_IDENTIFIER) != 0;
  Fields fields(parts->body);
  if (!first)
    fields.skip_array(static_cast<std::uint64_t>(std::popcount(attr.sample_type & before_id)), 8);
  const std::uint64_t id = fields.u64();
  return fields.ok() ? std::optional(id) : std::nullopt;
}

bool same_id_place(const perf_event_attr& one, const perf_event_attr& other) {
  if (one.sample_id_all != other.sample_id_all) return false;
  const std::uint64_t differ = one.sample_type ^ other.sample_type;
  if ((differ & PERF_SAMPLE_IDENTIFIER) != 0) return false;
  return (one.sample_type & PERF_SAMPLE_IDENTIFIER) != 0 ||
         (differ & (before_id | identity_fields)) == 0;
}

} // namespace nearfar::perf
