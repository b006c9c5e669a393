// One memory in the exact engine, driven clock by clock by another simulator.
//
// Time           starts at clock 0. A request arrives at the clock at which it is enqueued.
// Reads          complete when their data arrive at the processor's end of the link.
// Writes         are posted: their sender is done when they are accepted.
// Backpressure   a request that finds its queue full is not accepted.
// Thread safety  one thread.
#pragma once

#include <functional>
#include <queue>
#include <vector>

#include "sim/exact_memory.hpp"
#include "sim/link.hpp"

namespace nearfar::sim {

class Cosimulation {
public:
  /// `read_queue`: reads that a channel takes until one of them completes.
  /// Errors: bad_input (no read queue; a controller that contradicts itself or the device; the
  /// device).
  static Result<Cosimulation> create(const Device& device, const Controller& controller,
                                     unsigned read_queue);

  Cosimulation(Cosimulation&&) = default;
  Cosimulation& operator=(Cosimulation&&) = default;
  Cosimulation(const Cosimulation&) = delete;
  Cosimulation& operator=(const Cosimulation&) = delete;

  const Device& device() const { return device_; }

  /// Length of a clock: the memory's; 1 ns for a memory without commands.
  Time clock_ps() const { return clock_; }
  std::uint64_t clock() const { return now_ / clock_; }
  /// The clock at which the caller sees what happened at a time.
  std::uint64_t clock_at(Time at) const { return (at + clock_ - 1) / clock_; }

  /// Whether enqueue() takes this request now.
  bool accepts(std::uint64_t address, bool write) const;

  /// A request for the line of 64 bytes at `address`. `id` is what tick() reports of a read.
  /// False, and nothing happens, if the queue of its channel is full.
  bool enqueue(std::uint64_t id, std::uint64_t address, bool write);

  /// Advances by so many clocks. Appends the reads that have completed since, in order of time;
  /// Completion::at is in picoseconds. Errors: bad_input, and nothing happens, if the simulated
  /// time would exceed its limit.
  Status tick(std::uint64_t clocks, std::vector<Completion>& completed);

  /// Writes all posted writes as if no other request arrived, and ends the simulation: no request
  /// is accepted any more, and further calls return the same.
  struct Finished {
    Work work;
    Spent spent;
  };
  const Finished& finish();
  bool finished() const { return finished_.has_value(); }

private:
  struct Read {
    std::uint64_t id;
    std::uint32_t channel;
    std::size_t place; ///< in the queue of the link
  };
  struct Later {
    bool operator()(const Completion& a, const Completion& b) const { return a.at > b.at; }
  };

  Cosimulation(const Device& device, const Controller& controller, ExactMemory memory,
               unsigned read_queue);
  void end_read(std::uint64_t read, Time at);

  ExactMemory memory_;
  Decoder decoder_;
  LinkState link_;
  Time clock_;
  Time now_ = 0;
  Time writable_ = 0; ///< when the next write is accepted, as far as it is known
  Device device_;
  std::optional<Finished> finished_;
  unsigned read_queue_;
  std::vector<unsigned> reading_; ///< reads in flight, by channel
  std::vector<Read> reads_;       ///< by number; completed ones are used again
  std::vector<std::uint64_t> unused_;
  std::priority_queue<Completion, std::vector<Completion>, Later> arriving_; ///< by number
};

} // namespace nearfar::sim
