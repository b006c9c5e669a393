#include "perf/memory_events.hpp"

#include <algorithm>

#include "perf/pmu.hpp"

namespace nearfar::perf {

namespace {

/// AX to SS and R8 to R15: 64-bit programs have no DS, ES, FS and GS to sample.
constexpr std::uint64_t sampled_registers = 0xff0fff;
/// With 2 the kernel reports the instruction of the load itself; 3 restricts the counters.
constexpr std::uint64_t wanted_precision = 2;

constexpr std::uint64_t sampled_fields = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                         PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD |
                                         PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC;

Status add_load_latency(const char* devices, const char* unit, std::vector<MemoryEvent>& events) {
  const std::optional<Pmu> pmu = Pmu::find(devices, unit);
  const auto terms = pmu ? pmu->event("mem-loads") : std::nullopt;
  // A virtual machine may have counters without PEBS: its highest precision is 0.
  const std::uint64_t precision =
      terms ? pmu->capability("max_precise").value_or(wanted_precision) : 0;
  if (precision == 0) return Done{};
  MemoryEvent event;
  const std::string latency = "ldlat=" + std::to_string(min_load_latency_cycles);
  event.name = std::string(unit) + "/mem-loads," + latency + "/P";
  if (Status done = pmu->encode(*terms + "," + latency, event.attr); !done) return done.error();
  event.attr.precise_ip = std::min(precision, wanted_precision) & 3;
  event.attr.sample_type = sampled_fields | PERF_SAMPLE_REGS_USER;
  event.attr.sample_regs_user = sampled_registers;
  event.attr.exclude_kernel = 1;
  event.attr.exclude_hv = 1;
  if (const auto aux = pmu->event("mem-loads-aux")) {
    event.leader.emplace();
    if (Status done = pmu->encode(*aux, *event.leader); !done) return done.error();
    event.leader->exclude_kernel = 1;
    event.leader->exclude_hv = 1;
  }
  events.push_back(std::move(event));
  return Done{};
}

/// Registers are those of the interrupt, not of the sampled op, and are left out. The raw data serve
/// kernels before Linux 6.2, which do not decode them. With l3missonly the processor discards other
/// ops and starts to count anew, so that the period does not count ops: samples can be compared
/// with each other only.
Status add_ibs(const char* devices, std::vector<MemoryEvent>& events) {
  const std::optional<Pmu> pmu = Pmu::find(devices, "ibs_op");
  if (!pmu) return Done{};
  MemoryEvent event;
  event.hardware = MemoryEvent::Hardware::amd_ibs;
  std::string terms;
  const auto add = [&](const char* term) {
    if (!pmu->has_format(term)) return;
    if (!terms.empty()) terms += ',';
    terms.append(term).append("=1");
  };
  add("cnt_ctl");    // every Nth op, not every Nth cycle, which favors slow ones
  add("l3missonly"); // from Zen 4 on
  add("swfilt");     // the kernel drops samples of excluded modes, since Linux 6.14
  event.name = "ibs_op/" + terms + "/";
  if (Status done = pmu->encode(terms, event.attr); !done) return done.error();
  event.samples_kernel = !pmu->has_format("swfilt");
  event.attr.exclude_kernel = event.samples_kernel ? 0 : 1;
  event.attr.sample_type = sampled_fields | PERF_SAMPLE_RAW;
  events.push_back(std::move(event));
  return Done{};
}

} // namespace

Result<std::vector<MemoryEvent>> find_memory_events(const char* devices) {
  std::vector<MemoryEvent> events;
  for (const char* unit : {"cpu", "cpu_core", "cpu_atom"})
    if (Status done = add_load_latency(devices, unit, events); !done) return done.error();
  if (Status done = add_ibs(devices, events); !done) return done.error();
  return events;
}

} // namespace nearfar::perf
