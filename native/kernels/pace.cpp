#include "kernels/pace.hpp"

#include <algorithm>
#include <cmath>

#include "os/clock.hpp"
#include "os/cpu.hpp"

namespace nearfar::kernels {

std::uint64_t Device::take(double cost_ns, std::uint64_t asked_ns) {
  const auto cost = static_cast<std::uint64_t>(cost_ns);
  std::uint64_t until = taken_until_ns_.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    next = std::max(until, asked_ns) + cost;
  } while (!taken_until_ns_.compare_exchange_weak(until, next, std::memory_order_relaxed));
  return next - std::min(next - asked_ns, burst_ns);
}

Device* Devices::of(const tier::Spec& spec) {
  if (!spec.paced()) return nullptr;
  for (const Known& known : known_)
    if (tier::same_memory(known.spec, spec)) return known.device.get();
  known_.push_back({spec, std::make_unique<Device>(spec.pace)});
  return known_.back().device.get();
}

Pacer::Pacer(Device* device) : device_(device), random_(0) {
  static std::atomic<std::uint64_t> pacers{0};
  random_ = Random(Random(pacers.fetch_add(1, std::memory_order_relaxed)).next());
}

void Pacer::start() {
  if (device_ != nullptr) began_ns_ = os::now_ns();
}

/// With a mean of 1: delays keep theirs.
double Pacer::jitter() {
  const double uniform = (static_cast<double>(random_.next() >> 11) + 0.5) * 0x1p-53;
  return 1 + device_->pace().jitter * (-std::log(uniform) - 1);
}

std::uint64_t Pacer::due_ns(std::size_t read_bytes, std::size_t written_bytes,
                            std::uint64_t began_ns) {
  const tier::Pace& pace = device_->pace();
  const auto read = static_cast<double>(read_bytes);
  const auto written = static_cast<double>(written_bytes);
  const double lines_ns = (read * pace.read_line_ns + written * pace.write_line_ns) /
                          static_cast<double>(os::cache_line_bytes);
  const double shared_ns = (read / pace.read_bytes_per_s + written / pace.write_bytes_per_s) * 1e9;
  const std::uint64_t granted_ns = device_->take(shared_ns, began_ns);
  return std::max(granted_ns, began_ns + static_cast<std::uint64_t>(lines_ns * jitter()));
}

void Pacer::charge(std::size_t read_bytes, std::size_t written_bytes) {
  if (device_ == nullptr) return;
  const std::uint64_t done_ns = due_ns(read_bytes, written_bytes, began_ns_);
  std::uint64_t now_ns = os::now_ns();
  while (now_ns < done_ns) {
    os::spin_pause();
    now_ns = os::now_ns();
  }
  began_ns_ = now_ns;
}

} // namespace nearfar::kernels
