// Hardware and software counters of the calling thread, in groups that count at the same time.
//
// Names          those of libpfm4, such as "perf::INSTRUCTIONS" or "CYCLE_ACTIVITY:STALLS_L3_MISS";
//                where nearfar was built without it, no name is known (unsupported).
// Multiplexing   if there are more groups than counters, the kernel counts them in turns: a reading
//                has the time for which its group was enabled, and the time for which it counted.
// Counted        user code only; software events also in the kernel, if that is permitted.
// Thread safety  a group belongs to the thread that opened it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "os/file.hpp"

namespace nearfar::os {

/// An event as the kernel knows it.
struct CounterEvent {
  std::uint32_t type = 0;
  std::uint64_t config = 0;
  std::uint64_t config1 = 0;
  std::uint64_t config2 = 0;
};

/// Errors: unsupported (no libpfm4), not_found (this processor has no such event).
Result<CounterEvent> find_counter(const char* name);

struct CounterReading {
  std::vector<std::uint64_t> values; ///< in the order of the events, not scaled
  std::uint64_t wanted_ns = 0;
  std::uint64_t counted_ns = 0; ///< less than wanted where the kernel took turns; 0: never
};

class CounterGroup {
public:
  /// Opens events of the calling thread as one group, stopped, at zero. Errors: unsupported (the
  /// machine has no such counters, as most virtual machines), no_permission, os_error.
  static Result<CounterGroup> open(std::span<const CounterEvent> events);

  void start(); ///< one system call
  void stop();
  Result<CounterReading> read() const;

private:
  std::vector<File> events_; ///< the first leads
};

} // namespace nearfar::os
