// Events of this machine that sample memory accesses with address, latency and data source: Intel's
// load latency by PEBS, AMD's instruction-based sampling of ops.
//
// Source         sysfs; Intel SDM volume 3B, "Load Latency Performance Monitoring Facility"; the
//                kernel's arch/x86/events/intel/core.c (mem-loads-aux) and amd/ibs.c.
// Hardware       not validated on hardware: only described machines were tried.
// Thread safety  no shared state.
#pragma once

#include <cstdint>
#include <linux/perf_event.h>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace nearfar::perf {

inline constexpr char pmu_folder[] = "/sys/bus/event_source/devices";

/// Loads that took fewer cycles are not sampled by Intel's event: they are hits in L1 and L2.
inline constexpr unsigned min_load_latency_cycles = 30;

struct MemoryEvent {
  enum class Hardware : std::uint8_t { intel_pebs, amd_ibs };

  Hardware hardware = Hardware::intel_pebs;
  std::string name; ///< as for perf record -e
  /// Period and inheritance are the caller's.
  perf_event_attr attr{};
  /// An event that must lead the group of `attr`, counting, or the kernel refuses data sources
  /// (Intel from Alder Lake and Sapphire Rapids on).
  std::optional<perf_event_attr> leader;
  /// The event cannot be limited to user code, so that it requires perf_event_paranoid 1 or less.
  bool samples_kernel = false;
};

/// One for each PMU: hybrid processors have two. Empty on most virtual machines. Errors: bad_input,
/// unsupported (sysfs describes an event that cannot be encoded).
Result<std::vector<MemoryEvent>> find_memory_events(const char* devices = pmu_folder);

} // namespace nearfar::perf
