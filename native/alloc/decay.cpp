#include "alloc/decay.hpp"

#include <algorithm>
#include <cerrno>

#include "alloc/tier_heap.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

constinit std::atomic<std::uint8_t> decay_tick{0};

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr int default_decay_ms = 250;
constexpr std::uint64_t ticks_until_old = 2; ///< see old_enough()

constinit std::atomic<int> decay_ms{default_decay_ms};
constinit std::atomic<std::uint64_t> last_tick_ms{0};
constinit os::Lock purging_now;

} // namespace

os::Lock& purge_lock() { return purging_now; }

void set_decay_ms(int milliseconds) { decay_ms.store(milliseconds, relaxed); }

bool advance_decay() {
  const int tick_ms = decay_ms.load(relaxed);
  if (tick_ms <= 0) return tick_ms == 0;
  const std::uint64_t now = os::coarse_ms();
  std::uint64_t last = last_tick_ms.load(relaxed);
  if (now < last + static_cast<std::uint64_t>(tick_ms)) return false;
  if (!last_tick_ms.compare_exchange_strong(last, now, relaxed)) return false;
  const std::uint64_t ticks = (now - last) / static_cast<std::uint64_t>(tick_ms);
  decay_tick.fetch_add(static_cast<std::uint8_t>(std::min(ticks, ticks_until_old)), relaxed);
  return true;
}

void return_old_memory() {
  if (!purging_now.try_lock()) return;
  const int code = errno;
  const bool all = decay_ms.load(relaxed) == 0;
  for (TierHeap& tier : tiers)
    if (tier.ready()) purge_tier(tier, current_tick(), all);
  errno = code;
  purging_now.unlock();
}

} // namespace nearfar::alloc
