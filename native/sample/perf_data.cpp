#include "sample/perf_data.hpp"

#include <utility>

#include "perf/file.hpp"
#include "sample/record_window.hpp"

namespace nearfar::sample {

namespace {

constexpr char how_to_record[] =
    "perf record -d -e cpu-clock:u -c 500000 "
    "--user-regs=AX,BX,CX,DX,SI,DI,BP,SP,R8,R9,R10,R11,R12,R13,R14,R15 -- PROGRAM, or "
    "perf mem record -- PROGRAM";

enum class EventRole { clock, fault, memory, ibs_op, unused, refused };

EventRole software_role(const perf_event_attr& attr) {
  switch (attr.config) {
  case PERF_COUNT_SW_CPU_CLOCK:
  case PERF_COUNT_SW_TASK_CLOCK: return EventRole::clock;
  case PERF_COUNT_SW_PAGE_FAULTS:
  case PERF_COUNT_SW_PAGE_FAULTS_MIN:
  case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
    return (attr.sample_type & PERF_SAMPLE_ADDR) != 0 ? EventRole::fault : EventRole::unused;
  case PERF_COUNT_SW_DUMMY: return EventRole::unused; // perf adds it to record mappings
  default: return EventRole::refused;
  }
}

EventRole role_of(const perf::FileEvent& event, const perf::FileFacts& facts) {
  const perf_event_attr& attr = event.attr;
  if (attr.type == PERF_TYPE_SOFTWARE) return software_role(attr);
  const auto pmu = facts.pmus.find(attr.type);
  if (pmu != facts.pmus.end() && pmu->second == "ibs_op") return EventRole::ibs_op;
  constexpr std::uint64_t access = PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC;
  constexpr std::uint64_t latency = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT;
  const bool has_access =
      (attr.sample_type & access) == access && (attr.sample_type & latency) != 0;
  return attr.type != PERF_TYPE_HARDWARE && has_access ? EventRole::memory : EventRole::refused;
}

/// A record that waits for those before it. Its text is a copy.
struct KeptRecord {
  std::uint64_t time_ns = 0;
  EventRole role = EventRole::unused;
  perf::Record record;
  perf::MemoryAccess access;
  std::string text;
};

class FileCollector {
public:
  FileCollector(const char* path, Collector& collector) : path_(path), collector_(collector) {}

  /// Reads the file twice: only at its end is it known whether it has usable samples, and all build
  /// ids.
  Status collect() {
    Status checked = read([](KeptRecord&&) {}, [] {});
    if (!checked) return checked;
    checked = check();
    if (!checked) return checked;
    RecordWindow<KeptRecord> window;
    const auto give = [this](KeptRecord& one) {
      std::visit([&](auto& value) { take(one, value); }, one.record);
    };
    Status done = read([&](KeptRecord&& kept) { window.add(std::move(kept), give); },
                       [&] { window.end_round(give); });
    window.finish(give);
    return done;
  }

private:
  /// Calls keep(record) for each usable record, and end_round().
  template <class Keep, class EndRound>
  Status read(const Keep& keep_record, const EndRound& end_round) {
    Result<perf::DataFile> file = perf::DataFile::open(path_);
    if (!file) return file.error();
    for (std::uint64_t rounds = 0;;) {
      Result<const perf::EventRecord*> next = file->next();
      if (!next) return next.error();
      if (*next == nullptr) break;
      if (file->rounds() != std::exchange(rounds, file->rounds())) end_round();
      KeptRecord kept;
      kept.time_ns = time_of((*next)->record);
      kept.record = (*next)->record;
      const perf::FileEvent& event = file->events()[(*next)->event];
      kept.role = role_of(event, file->facts());
      const bool is_kept =
          std::visit([&](auto& value) { return keep(kept, value, event); }, kept.record);
      if (!refused_.empty()) return refusal();
      if (is_kept) keep_record(std::move(kept));
    }
    for (const perf::FileBuildId& found : file->facts().build_ids)
      collector_.processes.expect_build_id(found.file, found.bytes);
    return Done{};
  }

  /// Whether a sample is usable.
  bool keep(KeptRecord& kept, perf::Sample& sample, const perf::FileEvent& event) {
    if (kept.role == EventRole::refused) refused_ = event.name.empty() ? "its event" : event.name;
    if (kept.role == EventRole::unused || !sample.user_mode) return false;
    if (kept.role == EventRole::memory || kept.role == EventRole::ibs_op) {
      const auto access = perf::memory_access(sample, kept.role == EventRole::ibs_op);
      if (!access) return false;
      kept.access = *access;
      ++accesses_;
    }
    if (kept.role == EventRole::clock) {
      ++clocks_;
      const std::uint64_t present = sample.user_registers.present;
      registers_ += (present & register_mask()) == register_mask();
    }
    sample.raw = {};
    return true;
  }
  bool keep(KeptRecord& kept, perf::Mapping& mapping, const perf::FileEvent&) {
    if (!mapping.user_mode || mapping.pid == UINT32_MAX) return false; // the kernel's
    kept.text = mapping.file;
    collector_.processes.expect_build_id(kept.text, mapping.build_id);
    mapping.build_id = {};
    return true;
  }
  bool keep(KeptRecord& kept, const perf::Comm& comm, const perf::FileEvent&) {
    kept.text = comm.name;
    return true;
  }
  template <class Other>
  bool keep(KeptRecord&, const Other&, const perf::FileEvent&) {
    return true;
  }

  Status check() const {
    if (accesses_ > 0 || registers_ > 0) return Done{};
    return Error::make(Errc::bad_input, "'%s' has %s", path_,
                       clocks_ > 0 ? "samples of the clock without the registers of the program"
                                   : "no samples of a program's stalls or memory accesses")
        .try_next(how_to_record);
  }
  Error refusal() const {
    return Error::make(Errc::bad_input,
                       "'%s' has samples of %s, which show neither registers nor latencies", path_,
                       refused_.c_str())
        .try_next(how_to_record);
  }

  void take(const KeptRecord& kept, const perf::Sample& sample) {
    switch (kept.role) {
    case EventRole::clock: collector_.take_clock(sample); break;
    case EventRole::fault: collector_.take_fault(sample); break;
    default: collector_.take_memory(sample, kept.access);
    }
  }
  void take(const KeptRecord& kept, perf::Mapping& mapping) {
    mapping.file = kept.text;
    collector_.take(mapping);
  }
  void take(const KeptRecord& kept, perf::Comm& comm) {
    comm.name = kept.text;
    collector_.take(comm);
  }
  template <class Other>
  void take(const KeptRecord&, const Other& other) {
    collector_.take(other);
  }

  const char* path_;
  Collector& collector_;
  std::string refused_; ///< the event of a sample that cannot be used
  std::uint64_t accesses_ = 0;
  std::uint64_t clocks_ = 0;
  std::uint64_t registers_ = 0; ///< clock samples with all registers
};

} // namespace

Status collect_perf_data(const char* path, Collector& collector) {
  return FileCollector(path, collector).collect();
}

} // namespace nearfar::sample
