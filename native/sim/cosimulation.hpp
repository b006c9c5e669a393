// A memory in the exact engine for co-simulation: another simulator drives it clock by clock.
//
// Time           starts at clock 0. A request arrives at the clock at which it is enqueued.
// Reads          complete when their data arrive at the CPU side of the link.
// Writes         are posted: they are complete for the sender when they are accepted.
// Backpressure   a request is not accepted while its queue is full.
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
  /// `read_queue`: capacity of a channel's read queue, in requests.
  /// Errors: bad_input (a read queue of 0; a power state that the device does not have); those of
  /// check() and of the device.
  static Result<Cosimulation> create(const Device& device, const Controller& controller,
                                     unsigned read_queue);

  Cosimulation(Cosimulation&&) = default;
  Cosimulation& operator=(Cosimulation&&) = default;
  Cosimulation(const Cosimulation&) = delete;
  Cosimulation& operator=(const Cosimulation&) = delete;

  const Device& device() const { return device_; }

  /// Length of a clock of the memory; 1 ns for a device without command timings.
  Time clock_ps() const { return clock_; }
  std::uint64_t clock() const { return now_ / clock_; }
  /// The clock at which an event at time `at` is visible to the caller.
  std::uint64_t clock_at(Time at) const { return (at + clock_ - 1) / clock_; }

  /// Whether enqueue() would accept this request now.
  bool accepts(std::uint64_t address, bool write) const;

  /// Requests the line of 64 bytes that contains `address`. tick() reports a read by its `id`.
  /// Returns false, without an effect, if the queue of the channel is full.
  bool enqueue(std::uint64_t id, std::uint64_t address, bool write);

  /// Advances by `clocks`. Appends the reads that completed in this time, in order of time;
  /// Completion::at is in picoseconds. Errors: bad_input, without an effect, if the simulated time
  /// would exceed its limit.
  Status tick(std::uint64_t clocks, std::vector<Completion>& completed);

  struct Finished {
    Activity activity;
    EnergyParts energy;
  };
  /// Drains all posted writes and ends the simulation: no request is accepted afterwards. Further
  /// calls return the same result.
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
  AddressDecoder decoder_;
  LinkState link_;
  Time clock_;
  Time now_ = 0;
  Time writable_ = 0; ///< earliest time at which the next write is accepted
  Device device_;
  std::optional<Finished> finished_;
  unsigned read_queue_;
  std::vector<unsigned> reading_; ///< reads in flight, by channel
  std::vector<Read> reads_;       ///< by number; numbers are reused
  std::vector<std::uint64_t> unused_;
  /// Id: number of the read.
  std::priority_queue<Completion, std::vector<Completion>, Later> arriving_;
};

} // namespace nearfar::sim
