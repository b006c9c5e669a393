// Samples running programs from outside: no emulator, no counters, no privileges.
//
// Clock          each thread's CPU time, by a timer of the kernel (cpu-clock), with the registers
//                of the program. Time in the kernel is not sampled.
// Signals        where the kernel refuses its events, the programs take the samples themselves
//                (signal_clock.hpp), at the rate of the kernel's tick, without page faults.
// Data           the address that the oldest instruction waited for (stalled_access.hpp), and its
//                data: the allocation site by the allocation log (alloclog/log.hpp), else stack,
//                globals of a file, or mapped memory.
// Faults         addresses of every Nth page fault, for the number of pages that each site touched.
// Children       are followed, through fork and exec.
// Cost           what a sample costs on this machine is measured, and the clock is enabled in bursts
//                (bursts.hpp) so that samples take at most a given part of the CPU time. Page faults
//                and changes of mappings are recorded all the time.
// Files          recordings of perf are read as if they were sampled (perf_data.hpp).
// Thread safety  one thread at a time; open() by the thread that starts the program.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sample/process_map.hpp"
#include "sample/samples.hpp"

namespace nearfar::sample {

enum class ClockSource : std::uint8_t {
  kernel,  ///< events of the kernel: perf_event_open()
  signals, ///< SIGPROF in the program; open() only
};

struct SamplerOptions {
  std::uint64_t period_ns = 500'000; ///< of CPU time between two samples
  /// Page faults between two samples; 0: none. A sample costs about 1 us, and so does an event of a
  /// thread each time that the thread gets a CPU.
  std::uint64_t fault_period = 16;
  /// attach(): a clock for each CPU, whose samples of other programs are dropped, where the kernel
  /// permits it (root, CAP_PERFMON, or perf_event_paranoid at most 0). Clocks of threads, which are
  /// used otherwise, are enabled in bursts, a sixth of the time, with a period down to 1 ms.
  bool per_cpu_clock = true;
  ClockSource clock = ClockSource::kernel;
  /// open(): fraction of the CPU time that the kernel's clock samples may cost, with at least
  /// least_share of the time sampled; 0: any.
  double max_cost = 0;
};

/// Fraction of the time in which the clock runs, however much a sample costs.
inline constexpr double least_share = 0.2;

class Sampler {
public:
  /// Samples programs that the calling thread starts from now on, each from its exec on. Errors:
  /// no_permission, unsupported (then signals may do), os_error.
  static Result<Sampler> open(const SamplerOptions& options);
  /// Samples a running process with all its threads and descendants. It is not stopped.
  static Result<Sampler> attach(pid_t process, const SamplerOptions& options);

  /// The samples of a perf.data file. Errors: not_found, no_permission, bad_input.
  static Result<Sampler> read(const char* path);

  Sampler(Sampler&& other) noexcept;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(Sampler&&) = delete;
  ~Sampler();

  /// Value of the variable that programs need for the allocation log (alloclog::variable). Empty
  /// if it samples a process that was running before.
  std::string log_value() const;

  /// Reads the samples since the last call. Call it at least 20 times a second.
  void poll();

  /// Closes the events: programs that this thread starts later are not sampled.
  void stop();

  std::span<const Sample> samples() const;
  unsigned keeps_one_in() const; ///< one stretch of time in this many is in samples()
  std::span<const CodeLocation> code() const;
  /// Regions of data, with the sizes that the allocation log has seen so far.
  std::span<const DataRegion> data() const;
  std::span<const MappedFile> files() const;
  std::span<const std::string> names() const; ///< of anonymous memory, by number
  std::vector<ProcessRegion> regions() const; ///< as of the last poll()
  std::vector<SampledProgram> programs() const;
  /// Time between two samples; fraction of the time in which they were taken.
  std::uint64_t period_ns() const;
  double enabled_share() const;
  /// Time of the first sample of each burst. Empty if the clock always ran.
  std::span<const std::uint64_t> bursts() const;
  std::uint64_t lost() const;        ///< samples for which the ring had no room
  std::uint64_t unlogged() const;    ///< processes without an allocation log
  std::vector<pid_t> logged() const; ///< processes with one, as of the last poll()

private:
  struct Core;
  explicit Sampler(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

} // namespace nearfar::sample
