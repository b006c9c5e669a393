// Samples of other processes, as the kernel writes them: perf_event_open() and its ring of records.
//
// Events         those of a process and of all that it starts, on one CPU; one ring for each CPU.
//                Records are bytes of the kernel's format, decoded by native/perf.
// Privileges     none for the user's own processes where kernel.perf_event_paranoid is at most 2.
// Thread safety  a ring is used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <linux/perf_event.h>
#include <span>
#include <sys/types.h>
#include <vector>

#include "base/result.hpp"
#include "os/file.hpp"

namespace nearfar::os {

/// Records of events that run on one CPU.
class EventRing {
public:
  /// A record: its header and what follows. Valid until the call returns.
  using Visit = std::function<void(std::span<const std::uint8_t> record)>;

  /// Room of a ring: the most that a user without privileges may lock in memory for each CPU. It
  /// is halved, down to min_bytes, where other rings of the user have taken that.
  static constexpr std::size_t max_bytes = 512 << 10;
  static constexpr std::size_t min_bytes = 32 << 10;

  /// Opens events of the thread `thread` on a CPU; with `inherit` in their attributes, also of all
  /// threads and processes that it starts later. All write into the ring of the first. Errors:
  /// no_permission, unsupported, os_error.
  static Result<EventRing> open(std::span<const perf_event_attr> events, pid_t thread, int cpu);

  EventRing(EventRing&& other) noexcept;
  EventRing(const EventRing&) = delete;
  EventRing& operator=(EventRing&&) = delete;
  ~EventRing();

  /// Adds the events of another thread on the same CPU.
  Status add(std::span<const perf_event_attr> events, pid_t thread, int cpu);

  /// Enables or disables the events of a kind (perf_event_attr.config), also of threads that have
  /// inherited them. A disabled event writes no records of mappings, names and forks.
  void enable(std::uint64_t config, bool enabled);

  /// The kernel's numbers of the events, in the order in which they were opened; samples of
  /// children have the number of their parent's event.
  const std::vector<std::uint64_t>& ids() const { return ids_; }

  /// Visits the records that have come since the last call, in their order.
  void drain(const Visit& visit);

private:
  EventRing() = default;
  Status map(const File& event);

  struct Event {
    File file;
    std::uint64_t config;
  };
  std::vector<Event> events_; ///< the first owns the ring
  std::vector<std::uint64_t> ids_;
  perf_event_mmap_page* page_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::vector<std::uint8_t> joined_; ///< a record that goes around the ring's end
};

} // namespace nearfar::os
