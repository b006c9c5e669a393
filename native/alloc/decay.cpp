#include "alloc/decay.hpp"

#include "os/process.hpp"

namespace nearfar::alloc {

bool Decay::advance() {
  constexpr auto relaxed = std::memory_order_relaxed;
  const int tick_ms = ms();
  if (tick_ms <= 0) return tick_ms == 0;
  const std::uint64_t now = os::coarse_ms();
  std::uint64_t last = last_tick_ms_.load(relaxed);
  if (now < last + static_cast<std::uint64_t>(tick_ms)) return false;
  if (!last_tick_ms_.compare_exchange_strong(last, now, relaxed)) return false;
  tick_.fetch_add(1, relaxed);
  return true;
}

} // namespace nearfar::alloc
