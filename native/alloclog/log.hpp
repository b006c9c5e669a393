// The allocation log: which call site allocated the block, or made the mapping, at an address, in
// each process of a tree of running programs.
//
// Use            create() a log, start a program with `variable` set to variable_value() and the
//                library libnearfar-allocation-log.so in LD_PRELOAD, and call poll() every few tens
//                of milliseconds while the program runs. Children and programs that they execute
//                join by themselves.
// Slots          a process joins at its first allocation, if poll() has left a slot for it;
//                otherwise it runs without log, which is counted.
// Process image  what runs between two exec(), by number in the order of poll(). A process that
//                executes another program has two, of which find() uses the last.
// Missing        static programs, setuid programs, processes that do not see the reader's /proc or
//                have another process number there (containers).
// Sandboxes      a forked child joins at its first call of malloc or free, by open() and mmap(). A
//                child whose seccomp filter ends it at these calls, set before that, is killed.
// Lifetime       files have no names: all memory is freed when the log and the processes have
//                ended.
// Clock          samples of CPU time by a signal, if they are requested.
// Thread safety  poll(), take_clock_samples(), release() and the destructor exclude everything
//                else.
// Units          bytes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "alloclog/format.hpp"
#include "alloclog/mappings.hpp"
#include "alloclog/slot_file.hpp"
#include "base/result.hpp"

namespace nearfar::alloclog {

struct ProcessImage {
  ImageNumber number;
  pid_t pid;
  std::optional<ImageNumber> parent; ///< that it was forked from, and whose blocks it has
  bool has_ended;                    ///< or has executed another program, as of the last poll()
};

/// A call chain, and estimates of its allocations; its mappings are counted exactly. A chain may
/// have several sites.
struct Site {
  std::uint16_t number;
  std::vector<std::uint64_t> chain; ///< return addresses, innermost first; empty: all other sites
  double allocations;
  double allocated_bytes;
  double live_bytes; ///< of blocks that the image itself allocated
  double peak_live_bytes;
  bool is_mapping; ///< a call of mmap() or mremap()
};

/// Counts of processes and events that are not in the log.
struct Lost {
  std::uint64_t processes;      ///< without log: no slot was ready, or it could not be mapped
  std::uint64_t tracked_blocks; ///< large or sampled blocks that are not counted as live
  std::uint64_t mapping_events; ///< changes of mappings between two poll(), beyond 65,536
  std::uint64_t clock_samples;  ///< of a process between two take_clock_samples(), beyond 16,384
};

inline constexpr std::uint32_t default_ready_slots = 64;

class AllocationLog {
public:
  /// Creates a log with this many ready slots, each of which needs a descriptor. Errors: no_space
  /// (RLIMIT_FSIZE), unsupported (vm.overcommit_memory is 2), os_error. `clock_period_ns`: user CPU
  /// time between two samples of a thread by SIGPROF (preload/clock.hpp); 0: none.
  static Result<AllocationLog> create(std::uint32_t ready_slots = default_ready_slots,
                                      std::uint32_t clock_period_ns = 0);
  AllocationLog(AllocationLog&&) noexcept;
  AllocationLog& operator=(AllocationLog&&) noexcept;
  ~AllocationLog();

  /// The value of the environment variable: valid while this process runs.
  std::string variable_value() const;

  /// Finds new process images and those that have ended, and makes slots ready again. Fewer become
  /// ready where no descriptor is left.
  void poll();
  /// Forgets an image. Its memory is freed when no image that was forked from it is left.
  void release(ImageNumber image);

  /// Visits the clock samples of all images since the last call, as of the last poll(), those of
  /// each image in their order.
  void
  take_clock_samples(const std::function<void(const ProcessImage&, const ClockSample&)>& visit);

  std::vector<ProcessImage> images() const;
  /// The site of the block at an address of a running process. A few microseconds.
  std::optional<SiteReference> find(pid_t pid, std::uint64_t address) const;
  /// The mapping of a running process at an address, as of the last poll().
  std::optional<MappedBlock> find_mapping(pid_t pid, std::uint64_t address) const;
  /// The same of the last block and the last mapping at an address where there is none any more.
  std::optional<SiteReference> find_freed(pid_t pid, std::uint64_t address) const;
  std::optional<MappedBlock> find_unmapped(pid_t pid, std::uint64_t address) const;
  /// A site; empty if it does not exist.
  std::optional<Site> site(SiteReference reference) const;
  /// All sites of an image.
  std::vector<Site> sites(ImageNumber image) const;
  /// Chains of an image that had to be checked frame by frame, as they were new or vary.
  std::uint64_t slow_lookups(ImageNumber image) const;
  Lost lost() const;

private:
  struct Implementation;
  explicit AllocationLog(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

} // namespace nearfar::alloclog
