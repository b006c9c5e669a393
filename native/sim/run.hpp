// Sends the requests of a program to two memories, in either engine.
//
// Order          Independent requests are sent in program order, as early as the core allows.
//                Dependent reads are sent when their producer has completed.
// Prefetches     With the core `window`, prefetches have their own window of max_prefetched lines.
// In order       An engine with `in_order` requires nondecreasing times. Accesses that are sent
//                later than now_ wait in delayed_.
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "sim/engine.hpp"
#include "sim/feed.hpp"
#include "sim/in_flight.hpp"
#include "sim/link.hpp"
#include "sim/run_statistics.hpp"
#include "sim/simulate.hpp"

namespace nearfar::sim {

template <MemoryEngine Memory>
class Run {
public:
  Run(const Setup& setup, Memory far, Memory near, Placer placer)
      : setup_(setup), tiers_{std::move(far), std::move(near)}, placer_(std::move(placer)),
        links_{LinkState(setup.far.link), LinkState(setup.near.link)},
        accesses_(window_of(setup.core), max_prefetched), issue_(setup.core.issue),
        posts_writes_(setup.core.posted_writes),
        has_link_{setup.far.link.present(), setup.near.link.present()} {}

  Result<Outcome> run(RequestSource& source) { return run(source, *this); }

  /// `sink` passes what it receives on to this run.
  template <PlacedSink Sink>
  Result<Outcome> run(RequestSource& source, Sink& sink) {
    Result<std::uint64_t> fed = feed(source, placer_, setup_.max_requests, sink);
    if (!fed) return fed.error();
    statistics_.add_requests(*fed);
    return finish(source.tail());
  }

  /// Does not count writes to each line.
  void ignore_wear() { statistics_.ignore_wear(); }

  Time now() const { return now_; }
  void stall(Time time) {
    statistics_.stalled(time);
    now_ += time;
  }
  void move(const PlacedAccess& placed) {
    if (placed.write)
      post(placed);
    else
      tiers_[placed.near].read_for_migration(now_, placed.line);
  }
  void expect_write(const PlacedAccess& placed) {
    statistics_.prefetch_wear(placed.near, placed.line);
  }
  void issue(const Request& request, const PlacedAccess& placed) {
    if constexpr (Memory::in_order)
      if (ends_when_sent(request, placed)) return read_at_once(request.gap, placed);
    issue_any(request, placed);
  }

  /// Completes all accesses. `tail`: CPU time after the last request.
  Result<Outcome> finish(Time tail) {
    accesses_.for_each([&](std::uint64_t id) { end_of(id); });
    now_ += tail;
    const Time end = statistics_.finish(now_, tail, placer_.moved_pages());
    const Device* devices[2] = {&setup_.far, &setup_.near};
    for (unsigned near = 0; near < 2; ++near) {
      const Activity activity = tiers_[near].finish(end);
      statistics_.finish_tier(near, *devices[near], activity, tiers_[near].banks());
    }
    return std::move(statistics_).outcome();
  }

private:
  static constexpr std::uint64_t max_prefetched = 256;

  /// The time at which an access is sent, and its id.
  using Delayed = std::pair<Time, std::uint64_t>;

  static std::uint64_t window_of(const Core& core) {
    return core.issue == Issue::blocking ? 1
           : core.issue == Issue::window ? core.window
                                         : max_window;
  }

  /// In order: whether a request is a read that waits for no other one but the oldest of the window,
  /// so that its end is known when it is sent.
  bool ends_when_sent(const Request& request, const PlacedAccess& placed) const {
    return !(placed.write | request.prefetch | (request.depends != 0)) && delayed_.empty();
  }

  /// issue_any() of such a read.
  void read_at_once(Time gap, const PlacedAccess& placed) {
    now_ += gap;
    if (issue_ == Issue::window) now_ = std::max(now_, accesses_.end_of_oldest());
    const Time end = has_link_[placed.near] ? end_over_link(placed)
                                            : tiers_[placed.near].end_of(now_, placed.line, false);
    accesses_.add_complete_read(end);
    statistics_.read(placed.near, gap, now_, end);
    if (issue_ == Issue::blocking) now_ = end;
  }

  [[gnu::noinline]] Time end_over_link(const PlacedAccess& placed) {
    LinkState& link = links_[placed.near];
    std::size_t place = 0;
    const Time at = link.down(now_, false, &place);
    return link.up(tiers_[placed.near].end_of(at, placed.line, false), false, place);
  }

  /// issue() without a short path.
  [[gnu::noinline]] void issue_any(const Request& request, const PlacedAccess& placed) {
    accesses_.next_request();
    now_ += request.gap;
    statistics_.request(placed.near, request.write, request.gap);
    if (placed.write && posts_writes_)
      post(placed);
    else
      dispatch(request, placed);
  }

  void dispatch(const Request& request, const PlacedAccess& placed) {
    if (placed.write) statistics_.written(placed.near, placed.line);
    const Issue issue = issue_;
    const bool prefetch = request.prefetch && issue == Issue::window;
    if (const std::uint64_t oldest = accesses_.oldest_if_full(prefetch); oldest != no_access) {
      const Time free = end_of(oldest);
      if (issue == Issue::window) now_ = std::max(now_, free);
    }
    catch_up();
    const std::uint64_t id = accesses_.add(prefetch);
    InFlightAccess& access = accesses_[id];
    access = {now_, now_, never, placed.line, no_access, no_access, 0, placed.near, placed.write};
    const bool waits = request.depends && !placed.write && issue != Issue::trace_time;
    const std::uint64_t producer = waits ? accesses_.producer_of(request) : no_access;
    if (!placed.write) accesses_.add_read(id);
    if (producer == no_access) {
      send(id, now_);
    } else if (accesses_[producer].end == never) {
      access.sibling = accesses_[producer].dependent;
      accesses_[producer].dependent = id;
    } else {
      send(id, std::max(now_, accesses_[producer].end));
    }
    if (issue == Issue::blocking) now_ = end_of(id);
  }

  Time end_of(std::uint64_t id) {
    while (accesses_[id].end == never)
      step();
    return accesses_[id].end;
  }

  /// Simulates all events before now_. They must not depend on the request that is sent next.
  void catch_up() {
    if constexpr (Memory::in_order)
      while (!delayed_.empty() && delayed_.top().first <= now_)
        step();
    else
      while (earliest().first < now_)
        step();
  }

  void send(std::uint64_t id, Time at) {
    accesses_[id].sent = at;
    if (Memory::in_order && at > now_)
      delayed_.emplace(at, id);
    else
      serve(id, at);
  }

  void serve(std::uint64_t id, Time at) {
    InFlightAccess& access = accesses_[id];
    LinkState& link = links_[access.near];
    if (link.present()) {
      while (link.full())
        step();
      at = link.down(at, access.write, &access.place);
    }
    if (const std::optional<Time> end =
            tiers_[access.near].serve(id, at, access.line, access.write);
        end)
      complete(id, *end);
  }

  /// Ends an access that the memory completes at `at`. The response crosses the link, if any.
  void complete(std::uint64_t id, Time at) {
    InFlightAccess& access = accesses_[id];
    if (LinkState& link = links_[access.near]; link.present())
      at = link.up(at, access.write, access.place);
    access.end = at;
    statistics_.ended(access.near, at);
    if (!access.write) statistics_.read_ended(access.near, at - access.sent);
    for (std::uint64_t next = access.dependent; next != no_access; next = accesses_[next].sibling)
      send(next, std::max(accesses_[next].dispatched, at));
  }

  /// Sends a posted write. The core waits only until the write queue has room.
  void post(const PlacedAccess& placed) {
    statistics_.written(placed.near, placed.line);
    catch_up();
    LinkState& link = links_[placed.near];
    const Time at = link.present() ? link.down(now_, true, nullptr) : now_;
    std::optional<Time> accepted;
    while (!(accepted = tiers_[placed.near].post(at, placed.line)))
      step();
    const Time end = now_ + (*accepted > at ? *accepted - at : 0);
    if (issue_ != Issue::trace_time) now_ = end;
    statistics_.ended(placed.near, end);
  }

  /// Source of an event: a memory, or the first delayed access.
  enum class Source : unsigned { far, near, delayed };

  std::pair<Time, Source> earliest() {
    std::pair<Time, Source> first{never, Source::far};
    if constexpr (Memory::in_order) {
      if (!delayed_.empty()) first = {delayed_.top().first, Source::delayed};
    } else {
      for (const Source memory : {Source::far, Source::near})
        if (const Time at = tier(memory).next(); at < first.first) first = {at, memory};
    }
    return first;
  }

  Memory& tier(Source memory) { return tiers_[static_cast<unsigned>(memory)]; }

  void step() {
    const auto [at, source] = earliest();
    if (at == never) std::abort(); // bug: an access is in flight, and no event remains
    if (source == Source::delayed) {
      const std::uint64_t id = delayed_.top().second;
      delayed_.pop();
      serve(id, at);
    } else if (const std::optional<Completion> done = tier(source).step();
               done && done->id != no_access) {
      complete(done->id, done->at);
    }
  }

  const Setup& setup_;
  std::array<Memory, 2> tiers_; ///< far, near
  Placer placer_;
  std::array<LinkState, 2> links_;
  InFlight accesses_;
  std::priority_queue<Delayed, std::vector<Delayed>, std::greater<>> delayed_;
  RunStatistics statistics_;
  Time now_ = 0; ///< time of the core
  Issue issue_;
  bool posts_writes_;
  std::array<bool, 2> has_link_; ///< far, near
};

/// Creates both memories and the placement. `physical`: of the addresses. Errors: those of
/// simulate().
template <MemoryEngine Memory>
Result<Run<Memory>> make_run(const Setup& setup, const Plan& plan, bool physical) {
  Result<Memory> far = Memory::create(setup.far, setup.far_controller, setup.commands[0]);
  if (!far) return far.error();
  Result<Memory> near = Memory::create(setup.near, setup.near_controller, setup.commands[1]);
  if (!near) return near.error();
  Result<Placer> placer = Placer::create(plan, physical);
  if (!placer) return placer.error();
  return Run<Memory>(setup, std::move(*far), std::move(*near), std::move(*placer));
}

} // namespace nearfar::sim
