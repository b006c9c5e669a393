// An emulated slow tier, for kernels that know how many bytes they move.
//
// A thread processes a block at the speed of the real memory. Then it charges its Pacer with the
// bytes of the block, and the Pacer waits until the emulated device would have finished it:
//
//   delay   a time for each line of the block, separately for each thread; a part of it is random
//           and exponentially distributed, because delays of devices are skewed
//   bucket  the bandwidth that all threads of the tier share: a token bucket of device time with a
//           depth of burst_ns
//
// A block takes the maximum of its own work, its delay and its wait for tokens. Work hides a delay,
// as prefetching does. Time that a block did not need is not available to the next one.
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

/// The state that all threads of a paced tier share.
class Device {
public:
  explicit Device(const tier::Pace& pace) : pace_(pace) {}

  const tier::Pace& pace() const { return pace_; }

  /// Takes `cost_ns` of device time for a request at `asked_ns`; returns the time at which it is
  /// granted.
  std::uint64_t take(double cost_ns, std::uint64_t asked_ns);

  /// Depth of the bucket: device time in nanoseconds that may be taken in advance.
  static constexpr std::uint64_t burst_ns = 20'000;

private:
  const tier::Pace pace_;
  std::atomic<std::uint64_t> taken_until_ns_{0};
};

/// The devices of a benchmark: one for each paced tier, which all arrays on this tier share.
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
  /// Without a device (nullptr), nothing is paced. Each pacer of a process has its own random
  /// delays.
  explicit Pacer(Device* device);

  Device* device() const { return device_; }

  /// Starts the first block now.
  void start();

  /// Waits until the device would have finished a block with these bytes, which began at the end of
  /// the previous block.
  void charge(std::size_t read_bytes, std::size_t written_bytes);

  /// Takes the tokens of a block that began at `began_ns`; returns its earliest end. Requires a
  /// device.
  std::uint64_t due_ns(std::size_t read_bytes, std::size_t written_bytes, std::uint64_t began_ns);

private:
  double jitter();

  Device* device_;
  Random random_;
  std::uint64_t began_ns_ = 0;
};

} // namespace nearfar::kernels
