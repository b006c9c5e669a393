// Records of the kernel's perf_event interface, from their bytes to values.
//
// Source         the layouts in include/uapi/linux/perf_event.h of Linux; the order of the last
//                fields of a sample as kernel/events/core.c writes them (AUX after the page sizes).
// Input          untrusted: lengths inside a record are checked against its size.
// Lifetime       names, build ids and raw data point into the bytes that were decoded.
// Allocation     none.
// Thread safety  values, no shared state.
#pragma once

#include <array>
#include <cstdint>
#include <linux/perf_event.h>
#include <optional>
#include <string_view>
#include <variant>

#include "base/result.hpp"
#include "perf/fields.hpp"

namespace nearfar::perf {

/// General-purpose registers of x86, numbered as in asm/perf_regs.h (PERF_REG_X86_AX is 0).
struct Registers {
  static constexpr unsigned count = 24;

  std::uint64_t abi = PERF_SAMPLE_REGS_ABI_NONE; ///< PERF_SAMPLE_REGS_ABI_*
  std::uint32_t present = 0;                     ///< bit N: values[N] was sampled
  std::array<std::uint64_t, count> values{};

  bool has(unsigned number) const { return number < count && (present >> number & 1) != 0; }
};

struct Sample {
  std::uint64_t fields = 0; ///< PERF_SAMPLE_* bits of the event: which of these were sampled
  bool user_mode = false;
  bool exact_ip = false; ///< `ip` is the instruction that caused the event, without skid
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t cpu = 0;
  std::uint64_t ip = 0;
  std::uint64_t time = 0; ///< ns of the clock of the event
  std::uint64_t addr = 0;
  std::uint64_t id = 0;     ///< of the event: SAMPLE_IDENTIFIER or SAMPLE_ID
  std::uint64_t period = 0; ///< if not sampled, that of the attribute; 0 of a frequency
  /// SAMPLE_WEIGHT, or the first 32 bits of SAMPLE_WEIGHT_STRUCT: cycles of latency.
  std::uint64_t weight = 0;
  std::uint64_t data_src = 0; ///< see data_source.hpp
  std::uint64_t phys_addr = 0;
  Registers user_registers;
  ByteSpan raw; ///< SAMPLE_RAW without its length

  bool has(std::uint64_t field) const { return (fields & field) != 0; }
};

/// Identity of a record other than a sample, if the event has sample_id_all. Zero if not sampled.
struct SampleId {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t cpu = 0;
  std::uint64_t time = 0;
  std::uint64_t id = 0;
};

/// MMAP and MMAP2.
struct Mapping {
  SampleId sample_id;
  std::uint32_t pid = 0; ///< of a kernel mapping UINT32_MAX
  std::uint32_t tid = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint64_t file_offset = 0;
  bool executable = false;
  bool user_mode = false;
  std::uint32_t protection = 0; ///< PROT_*; of MMAP, which does not have it, 0
  std::uint32_t flags = 0;      ///< MAP_*; of MMAP 0
  ByteSpan build_id;            ///< empty if the record has none
  std::string_view file;
};

struct Comm {
  SampleId sample_id;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  bool exec = false; ///< the name changed by exec: mappings before it are gone
  std::string_view name;
};

/// The fields of FORK and EXIT.
struct Task {
  SampleId sample_id;
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t parent_tid = 0;
  std::uint64_t time = 0;
};
struct Fork : Task {};
struct Exit : Task {};

/// Records that found no room in the ring.
struct Lost {
  SampleId sample_id;
  std::uint64_t id = 0;
  std::uint64_t count = 0;
};

/// Samples that were dropped, by the hardware or because of an error.
struct LostSamples {
  SampleId sample_id;
  std::uint64_t count = 0;
};

struct Throttle {
  SampleId sample_id;
  bool starts = false; ///< THROTTLE; false for UNTHROTTLE
  std::uint64_t time = 0;
  std::uint64_t id = 0;
};

/// Any other type, those that perf adds to its files (64 and above) included.
struct OtherRecord {
  SampleId sample_id;
  std::uint32_t type = 0;
};

using Record =
    std::variant<Sample, Mapping, Comm, Fork, Exit, Lost, LostSamples, Throttle, OtherRecord>;

/// Decodes the record at the start of `bytes`, which may have more behind it. `attr` is that of
/// the record's event. Errors: bad_input (shorter than its header or its fields).
Result<Record> decode(const perf_event_attr& attr, ByteSpan bytes);

/// The id of the event that a record belongs to, from the place that `attr` gives it: for files
/// with several events, whose attributes agree on that place. Empty if the record has no id.
std::optional<std::uint64_t> event_id(const perf_event_attr& attr, ByteSpan bytes);

/// Whether event_id() finds the ids of both events in the same place.
bool same_id_place(const perf_event_attr& one, const perf_event_attr& other);

/// The first type of the records that perf adds to its files (PERF_RECORD_USER_TYPE_START).
inline constexpr std::uint32_t first_file_record = 64;

} // namespace nearfar::perf
