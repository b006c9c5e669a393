// Turns records of the kernel, live or recorded, into samples with their code and data.
//
// Order          records are taken in the order of their times, mappings before samples in them.
// Thread safety  none.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "alloclog/log.hpp"
#include "perf/memory_access.hpp"
#include "perf/record.hpp"
#include "sample/code_locations.hpp"
#include "sample/data_regions.hpp"
#include "sample/process_map.hpp"
#include "sample/samples.hpp"

namespace nearfar::sample {

/// PERF_REG_X86_* that a clock sample requires to have an address.
std::uint64_t register_mask();

/// The processor's general registers, by its numbers, as the kernel numbers them.
perf::Registers kernel_registers(const std::uint64_t (&values)[registers]);

/// The time of a record, 0 if it was not recorded.
std::uint64_t time_of(const perf::Record& record);

/// Of an access: 0 if unknown.
struct Addresses {
  std::uint64_t accessed;
  std::uint64_t owner; ///< an address of the same data
};

/// Has pointers to its own members: cannot be moved.
class Collector {
public:
  explicit Collector(CodeSource source) : code(processes, source) {}
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// A sample of CPU time. Without all registers its data address is unknown.
  void take_clock(const perf::Sample& record);
  /// A sample of page faults, with an address.
  void take_fault(const perf::Sample& record);
  /// An access that hardware sampled.
  void take_memory(const perf::Sample& record, const perf::MemoryAccess& access);

  void take(const perf::Mapping& record);
  void take(const perf::Comm& record);
  void take(const perf::Fork& record);
  void take(const perf::Lost& record) { lost += record.count; }
  void take(const perf::LostSamples& record) { lost += record.count; }
  template <class Other>
  void take(const Other&) {}

  std::optional<alloclog::AllocationLog> log;
  ProcessMap processes;
  SampleStore store;
  CodeLocations code;
  DataRegions data{processes, log};
  std::map<pid_t, SampledProgram> programs;
  std::uint64_t lost = 0;
  std::set<pid_t> incomplete; ///< processes with samples at addresses where nothing was mapped

private:
  Addresses addresses_of(const StalledAccess& access, const perf::Sample& record);
  /// The stack pointer of a sample's thread, as last seen: hardware samples may be without
  /// registers. 0: unknown.
  std::uint64_t stack_pointer(const perf::Sample& record);
  /// `owner`: an address of the data that the sample is of; 0: unknown.
  void add(Sample& sample, const perf::Sample& record, std::uint64_t owner);

  std::unordered_map<std::uint32_t, std::uint64_t> stack_pointers_; ///< by thread
};

} // namespace nearfar::sample
