// A lane: a unit that the exact engine simulates independently in trace time. It is one channel, or
// a whole memory if its channels share a link or a queue.
//
// The trace gives the arrival times of requests, so that lanes do not depend on each other.
// Thread safety  one thread at a time.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sim/access_times.hpp"
#include "sim/exact_memory.hpp"
#include "sim/link.hpp"

namespace nearfar::sim {

enum class LaneRequestType : unsigned char { read, write, posted_write, migration_read };

struct LaneRequest {
  Time at;
  std::uint64_t line;
  LaneRequestType type;
};

class Lane {
public:
  /// At most `max_in_flight` accesses are in flight in the memory; later ones wait in the lane.
  Lane(ExactMemory memory, const Link& link, std::size_t max_in_flight)
      : memory_(std::move(memory)), link_(link), pending_(max_in_flight) {}

  /// Adds a request to the next batch. Requires that requests are added in order of time.
  void add(const LaneRequest& request) { incoming_.push_back(request); }
  /// Makes the requests added since the last call the batch of run().
  void next_batch() {
    batch_.clear();
    std::swap(batch_, incoming_);
    taken_ = 0;
  }

  /// Requests of the batch that are not simulated yet.
  std::size_t left() const { return batch_.size() - taken_; }
  /// Simulates up to `max_requests` requests of the batch.
  void run(std::size_t max_requests) {
    for (const std::size_t end = taken_ + std::min(max_requests, left()); taken_ < end; ++taken_)
      take(batch_[taken_]);
  }
  /// Waits for all accesses but posted writes.
  void drain() {
    for (const PendingAccess& access : pending_)
      wait_for(access);
  }

  const AccessTimes& times() const { return times_; }
  /// Completes posted writes. Returns the activity until `end`.
  Activity finish(Time end) { return memory_.finish(end); }
  std::vector<BankActivity> banks() const { return memory_.banks(); }

private:
  struct PendingAccess {
    Time sent = 0;
    Time end = 0;          ///< `never` until it completes
    std::size_t place = 0; ///< in the queue of the link
    bool write = false;
  };

  void take(const LaneRequest& request) {
    if (request.type == LaneRequestType::migration_read)
      return memory_.read_for_migration(request.at, request.line);
    while (memory_.next() < request.at) // earlier events must not depend on this request
      step();
    if (request.type == LaneRequestType::posted_write)
      post(request);
    else
      send(request);
  }

  void send(const LaneRequest& request) {
    PendingAccess& access = pending_[next_];
    wait_for(access); // the oldest
    access = {request.at, never, 0, request.type == LaneRequestType::write};
    Time at = request.at;
    if (link_.present()) {
      while (link_.full())
        step();
      at = link_.down(at, access.write, &access.place);
    }
    const std::size_t id = next_;
    next_ = (next_ + 1) % pending_.size();
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

  void wait_for(const PendingAccess& access) {
    while (access.end == never)
      step();
  }

  void step() {
    memory_.next();
    const std::optional<Completion> done = memory_.step();
    if (done && done->id != no_access) complete(done->id, done->at);
  }

  void complete(std::uint64_t id, Time at) {
    PendingAccess& access = pending_[id];
    if (link_.present()) at = link_.up(at, access.write, access.place);
    access.end = at;
    times_.access_ended(at);
    if (!access.write) times_.read_ended(at - access.sent);
  }

  ExactMemory memory_;
  LinkState link_;
  std::vector<PendingAccess> pending_; ///< a ring
  std::size_t next_ = 0;               ///< index of the oldest access, which the next one replaces
  std::vector<LaneRequest> batch_;
  std::size_t taken_ = 0; ///< requests of the batch that are simulated
  AccessTimes times_;
  /// On a line of its own: another thread adds to it while this lane runs.
  alignas(line_bytes) std::vector<LaneRequest> incoming_;
};

} // namespace nearfar::sim
