// An emulated slow tier, for kernels that know their bytes.
//
// A thread works on a block at the speed of the memory behind the tier, then charges its Pacer with
// the bytes of the block, which returns when the device would have been done:
//
//   delay   so much for each line of the block, of this thread alone; a part of it varies at
//           random, exponentially distributed: skewed, as delays of devices are
//   bucket  what all threads of the tier together may move: tokens of device time that refill as
//           time goes by, with room for burst_ns of them
//
// The block takes the longest of its own work, its delay and its wait for tokens: work hides a
// delay, as prefetching does. Time that a block did not need is not saved up for the next.
//
// Thread safety  a Device is shared by all threads of its tier, a Pacer belongs to one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "tier/spec.hpp"

namespace nearfar::kernels {

/// What all threads that use one paced tier share.
class Device {
public:
  explicit Device(const tier::Pace& pace) : pace_(pace) {}

  const tier::Pace& pace() const { return pace_; }

  /// Takes `cost_ns` of device time, asked for at `asked_ns`. Returns when it is granted.
  std::uint64_t take(double cost_ns, std::uint64_t asked_ns);

  /// Device time that may be taken ahead, in nanoseconds: the depth of the bucket.
  static constexpr std::uint64_t burst_ns = 20'000;

private:
  const tier::Pace pace_;
  std::atomic<std::uint64_t> taken_until_ns_{0};
};

/// The devices of a benchmark: one for each paced tier, however many arrays lie on it.
class Devices {
public:
  /// nullptr for a tier that is not paced.
  Device* of(const tier::Spec& spec);

private:
  struct Known {
    tier::Spec spec;
    std::unique_ptr<Device> device;
  };
  std::vector<Known> known_;
};

class Pacer {
public:
  /// Paces nothing where `device` is nullptr. Every pacer of a process has jitter of its own.
  explicit Pacer(Device* device);

  Device* device() const { return device_; }

  /// The first block begins now.
  void start();

  /// Waits until a block with so many bytes read and written, begun when the last one ended, would
  /// be done.
  void charge(std::size_t read_bytes, std::size_t written_bytes);

  /// When a block that began at `began_ns` is done, at the earliest. Takes the device's tokens.
  /// Requires a device.
  std::uint64_t due_ns(std::size_t read_bytes, std::size_t written_bytes, std::uint64_t began_ns);

private:
  double jitter();

  Device* device_;
  Random random_;
  std::uint64_t began_ns_ = 0;
};

} // namespace nearfar::kernels
