// What both engines' runs have in common: the core, the placement, links, and what is counted.
//
// Requests set out as early as is known that they may: independent ones in the order of the
// program, those that wait for another's data once it is there. An engine's memory is a Tier:
//
//   serve(id, at, line, write)  an access arrives; its end, or nothing if it comes out of step()
//   post(at, line)              a write is left behind; when its sender goes on, or nothing if
//                               there is no room before the next step()
//   drop(at, line)              a read nobody waits for
//   next()                      when the next event of the memory is due, or `never`
//   step()                      that event; the access that it ended, if any
//   finish(end)                 all that is left behind is done; what was done in all
//
// Prefetches have a window of their own where the core has one: as many as `most_prefetched` lines
// are on their way before it waits for them.
//
// A Tier with `in_order` true is to get its accesses in the order of their times: those that set
// out later than the processor's own time wait here until it has caught up.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "sim/completion.hpp"
#include "sim/link.hpp"
#include "sim/simulate.hpp"

namespace nearfar::sim {

template <class Tier>
class Run {
public:
  Run(const Setup& setup, Tier far, Tier near, Placer placer)
      : setup_(setup), tiers_{std::move(far), std::move(near)}, placer_(std::move(placer)),
        links_{LinkState(setup.far.link), LinkState(setup.near.link)} {
    const Issue issue = setup.core.issue;
    demands().allow(issue == Issue::blocking ? 1
                    : issue == Issue::window ? setup.core.window
                                             : most_window);
    prefetches().allow(most_prefetched);
    reads_.resize(2 * (most_depends + 1), nobody);
  }

  Result<Outcome> run(Source& source) {
    std::array<Request, batch> requests;
    std::uint64_t left = setup_.most_requests;
    while (left > 0) {
      const std::size_t wanted = std::min<std::uint64_t>(batch, left);
      Result<std::size_t> got = source.fill(std::span(requests).first(wanted));
      if (!got) return got.error();
      if (*got == 0) break;
      left -= *got;
      outcome_.requests += *got;
      take(std::span<const Request>(requests).first(*got));
    }
    return finish(source.tail());
  }

private:
  static constexpr std::size_t batch = 256;
  static constexpr std::uint64_t most_prefetched = 256;

  struct Access {
    Time dispatched = 0; ///< when it would set out if it waited for no other's data
    Time set_out = 0;
    Time end = never; ///< never: not known yet
    std::uint64_t line = 0;
    std::uint64_t follower = nobody; ///< the last access that waits for this one's data
    std::uint64_t beside = nobody;   ///< the next one that waits for the same
    std::size_t place = 0;           ///< in the queue of the link
    bool near = false;
    bool write = false;
  };

  /// Accesses of which so many may be in flight; what is older than the window is over.
  struct Lane {
    std::uint64_t window = 1;
    std::uint64_t next = 0;
    std::uint64_t mask = 0;
    std::vector<Access> ring;
    void allow(std::uint64_t many) {
      window = many;
      ring.resize(std::bit_ceil(4 * many));
      mask = ring.size() - 1;
    }
  };

  /// An access that sets out later than all that may yet be dispatched now.
  using Later = std::pair<Time, std::uint64_t>;

  /// An id is twice the number in its lane, and the lane.
  Access& access(std::uint64_t id) {
    Lane& lane = lanes_[id & 1];
    return lane.ring[(id >> 1) & lane.mask];
  }
  Lane& demands() { return lanes_[0]; }
  Lane& prefetches() { return lanes_[1]; }

  /// Static plans in three passes, each of which asks for the memory that the next one needs.
  void take(std::span<const Request> requests) {
    if (!placer_.is_static()) {
      for (const Request& request : requests)
        take_moving(request);
      return;
    }
    std::array<Spot, batch> spots;
    for (const Request& request : requests)
      placer_.prefetch(request);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      spots[i] = placer_.place_fixed(requests[i]);
      if (spots[i].write) wear_[spots[i].near].prefetch(spots[i].line);
    }
    for (std::size_t i = 0; i < requests.size(); ++i)
      go(requests[i], spots[i]);
  }

  void take_moving(const Request& request) {
    moved_.clear();
    Time stall = 0;
    const Spot spot = placer_.place(request, now_, moved_, stall);
    outcome_.stall += stall;
    now_ += stall;
    for (const Spot& other : moved_)
      if (other.write)
        post(other);
      else
        tiers_[other.near].drop(now_, other.line);
    go(request, spot);
  }

  void go(const Request& request, const Spot& spot) {
    reads_[++number_ & (reads_.size() - 1)] = nobody;
    outcome_.compute += request.gap;
    now_ += request.gap;
    TierOutcome& told = outcome_.tiers[spot.near];
    if (request.write)
      ++told.writes; // one that missed a cache of lines reads first
    else
      ++told.reads;
    if (spot.write && setup_.core.posted_writes)
      post(spot);
    else
      dispatch(request, spot);
  }

  void dispatch(const Request& request, const Spot& spot) {
    if (spot.write) wear_[spot.near].write(spot.line);
    const Issue issue = setup_.core.issue;
    const bool prefetch = request.prefetch && issue == Issue::window;
    Lane& lane = lanes_[prefetch];
    if (lane.next >= lane.window) {
      const Time free = end_of((lane.next - lane.window) << 1 | prefetch);
      if (issue == Issue::window) now_ = std::max(now_, free);
    }
    catch_up();
    const std::uint64_t id = lane.next++ << 1 | prefetch;
    Access& fresh = access(id);
    fresh = {now_, now_, never, spot.line, nobody, nobody, 0, spot.near, spot.write};
    const bool waits = request.depends && !spot.write && issue != Issue::trace_time;
    const std::uint64_t before = waits ? read_before(request) : nobody;
    if (!spot.write) reads_[number_ & (reads_.size() - 1)] = id;
    if (before == nobody) {
      set_out(id, now_);
    } else if (access(before).end == never) {
      fresh.beside = access(before).follower;
      access(before).follower = id;
    } else {
      set_out(id, std::max(now_, access(before).end));
    }
    if (issue == Issue::blocking) now_ = end_of(id);
  }

  /// The access whose value made the address of this one; nobody if it is long over.
  std::uint64_t read_before(const Request& request) const {
    if (request.depends > most_depends || request.depends >= number_) return nobody;
    const std::uint64_t id = reads_[(number_ - request.depends) & (reads_.size() - 1)];
    if (id == nobody || id & 1) return nobody;
    const Lane& lane = lanes_[0];
    return lane.next - (id >> 1) > lane.window + 1 ? nobody : id;
  }

  Time end_of(std::uint64_t id) {
    while (access(id).end == never)
      step();
    return access(id).end;
  }

  /// Events that lie behind the processor's time: none of them can change any more.
  void catch_up() {
    if constexpr (Tier::in_order)
      while (!later_.empty() && later_.top().first <= now_)
        step();
    else if (setup_.core.issue == Issue::trace_time)
      while (earliest().first < now_)
        step();
  }

  void set_out(std::uint64_t id, Time at) {
    Access& one = access(id);
    one.set_out = at;
    if (Tier::in_order && at > now_)
      later_.emplace(at, id);
    else
      serve(id, at);
  }

  void serve(std::uint64_t id, Time at) {
    Access& one = access(id);
    LinkState& link = links_[one.near];
    if (link.present()) {
      while (link.full())
        step();
      at = link.down(at, one.write, &one.place);
    }
    if (const std::optional<Time> end = tiers_[one.near].serve(id, at, one.line, one.write); end)
      over(id, *end);
  }

  /// An access is over in its memory at `at`.
  void over(std::uint64_t id, Time at) {
    Access& one = access(id);
    if (LinkState& link = links_[one.near]; link.present()) at = link.up(at, one.write, one.place);
    one.end = at;
    last_ = std::max(last_, at);
    if (!one.write) {
      TierOutcome& told = outcome_.tiers[one.near];
      told.read_time += at - one.set_out;
      told.read_ns.record((at - one.set_out) / 1000);
    }
    for (std::uint64_t next = one.follower; next != nobody; next = access(next).beside)
      set_out(next, std::max(access(next).dispatched, at));
  }

  /// A write that nobody waits for: the processor goes on once there is room for it.
  void post(const Spot& spot) {
    wear_[spot.near].write(spot.line);
    catch_up();
    LinkState& link = links_[spot.near];
    const Time at = link.present() ? link.down(now_, true, nullptr) : now_;
    std::optional<Time> on;
    while (!(on = tiers_[spot.near].post(at, spot.line)))
      step();
    if (setup_.core.issue != Issue::trace_time) now_ += *on > at ? *on - at : 0;
    last_ = std::max(last_, now_);
  }

  /// The earliest event: of a memory, or an access that was waiting for its time (2).
  std::pair<Time, unsigned> earliest() {
    std::pair<Time, unsigned> first{never, 0};
    if constexpr (Tier::in_order) {
      if (!later_.empty()) first = {later_.top().first, 2};
    } else {
      for (unsigned near = 0; near < 2; ++near)
        if (const Time at = tiers_[near].next(); at < first.first) first = {at, near};
    }
    return first;
  }

  void step() {
    const auto [at, which] = earliest();
    if (at == never) return;
    if (which == 2) {
      const std::uint64_t id = later_.top().second;
      later_.pop();
      serve(id, at);
    } else if (const std::optional<Completion> done = tiers_[which].step();
               done && done->id != nobody) {
      over(done->id, done->at);
    }
  }

  Result<Outcome> finish(Time tail) {
    for (std::uint64_t kind = 0; kind < 2; ++kind) {
      const Lane& lane = lanes_[kind];
      for (std::uint64_t n = lane.next > lane.window ? lane.next - lane.window : 0; n < lane.next;
           ++n)
        end_of(n << 1 | kind);
    }
    now_ += tail;
    outcome_.compute += tail;
    outcome_.end = std::max(now_, last_);
    outcome_.moved_pages = placer_.moved_pages();
    const Device* devices[2] = {&setup_.far, &setup_.near};
    for (unsigned near = 0; near < 2; ++near) {
      TierOutcome& told = outcome_.tiers[near];
      told.work = tiers_[near].finish(outcome_.end);
      told.spent = energy_of(*devices[near], told.work, outcome_.end);
      told.worn = wear_[near].summary();
    }
    return std::move(outcome_);
  }

  const Setup& setup_;
  std::array<Tier, 2> tiers_; ///< far, near
  Placer placer_;
  std::array<LinkState, 2> links_;
  std::array<Wear, 2> wear_;
  std::vector<Spot> moved_;
  std::array<Lane, 2> lanes_;        ///< demands, prefetches
  std::vector<std::uint64_t> reads_; ///< ids of the last reads, by number of the request
  std::priority_queue<Later, std::vector<Later>, std::greater<>> later_;
  Outcome outcome_;
  std::uint64_t number_ = 0; ///< of the request
  Time now_ = 0;             ///< the processor's
  Time last_ = 0;
};

/// Makes both memories, the placement, and runs.
template <class Tier>
Result<Outcome> run_with(Source& source, const Setup& setup) {
  Result<Tier> far = Tier::create(setup.far, setup.far_controller, setup.commands[0]);
  if (!far) return far.error();
  Result<Tier> near = Tier::create(setup.near, setup.near_controller, setup.commands[1]);
  if (!near) return near.error();
  Result<Placer> placer = Placer::create(setup.plan, source.physical());
  if (!placer) return placer.error();
  return Run<Tier>(setup, std::move(*far), std::move(*near), std::move(*placer)).run(source);
}

} // namespace nearfar::sim
