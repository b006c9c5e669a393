// What the exact engine simulates independently in trace time: a channel, or all of a memory whose
// channels share a link or a queue.
//
// Requests come at given times, whatever the memory does, so that a lane depends on no other lane.
// Thread safety  one thread at a time.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sim/access_times.hpp"
#include "sim/exact_memory.hpp"
#include "sim/link.hpp"

namespace nearfar::sim {

enum class LaneAccess : unsigned char { read, write, posted_write, moved_read };

struct LaneRequest {
  Time at;
  std::uint64_t line;
  LaneAccess access;
};

class Lane {
public:
  /// At most `most` accesses wait for the memory, as far as it knows; later ones wait in the lane.
  Lane(ExactMemory memory, const Link& link, std::size_t most)
      : memory_(std::move(memory)), link_(link), flying_(most) {}

  /// Takes a request, in the order of their times. The next run() simulates it.
  void add(const LaneRequest& request) { incoming_.push_back(request); }
  /// What was added since the last call is what run() simulates.
  void next_batch() {
    batch_.clear();
    std::swap(batch_, incoming_);
  }

  void run() {
    for (const LaneRequest& request : batch_)
      take(request);
  }
  /// Waits for all accesses but posted writes.
  void drain() {
    for (const Flying& access : flying_)
      wait_for(access);
  }

  const AccessTimes& times() const { return times_; }
  /// Completes posted writes; what was done until `end`.
  Work finish(Time end) { return memory_.finish(end); }
  std::vector<BankWork> banks() const { return memory_.banks(); }

private:
  struct Flying {
    Time sent = 0;
    Time end = 0; ///< `never`: not known yet
    std::size_t place = 0;
    bool write = false;
  };

  void take(const LaneRequest& request) {
    if (request.access == LaneAccess::moved_read)
      return memory_.read_for_migration(request.at, request.line);
    while (memory_.next() < request.at) // a request that comes now must not change these
      step();
    if (request.access == LaneAccess::posted_write)
      post(request);
    else
      send(request);
  }

  void send(const LaneRequest& request) {
    Flying& access = flying_[next_];
    wait_for(access); // the oldest
    access = {request.at, never, 0, request.access == LaneAccess::write};
    Time at = request.at;
    if (link_.present()) {
      while (link_.full())
        step();
      at = link_.down(at, access.write, &access.place);
    }
    const std::size_t id = next_;
    next_ = (next_ + 1) % flying_.size();
    if (const std::optional<Time> end = memory_.serve(id, at, request.line, access.write); end)
      complete(id, *end);
  }

  void post(const LaneRequest& request) {
    const Time at = link_.present() ? link_.down(request.at, true, nullptr) : request.at;
    std::optional<Time> accepted;
    while (!(accepted = memory_.post(at, request.line)))
      step();
    times_.access_ended(request.at + (*accepted > at ? *accepted - at : 0));
  }

  void wait_for(const Flying& access) {
    while (access.end == never)
      step();
  }

  void step() {
    memory_.next();
    const std::optional<Completion> done = memory_.step();
    if (done && done->id != no_access) complete(done->id, done->at);
  }

  void complete(std::uint64_t id, Time at) {
    Flying& access = flying_[id];
    if (link_.present()) at = link_.up(at, access.write, access.place);
    access.end = at;
    times_.access_ended(at);
    if (!access.write) times_.read_ended(at - access.sent);
  }

  ExactMemory memory_;
  LinkState link_;
  std::vector<Flying> flying_; ///< a ring
  std::size_t next_ = 0;       ///< of it: where the next access goes, the oldest
  std::vector<LaneRequest> incoming_;
  std::vector<LaneRequest> batch_;
  AccessTimes times_;
};

} // namespace nearfar::sim
