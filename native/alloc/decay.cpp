#include "alloc/decay.hpp"

#include "alloc/tier_heap.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

constinit std::atomic<std::uint8_t> decay_tick{0};

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::size_t worth_a_thread = std::size_t{1} << 20;
constexpr int default_decay_ms = 250;

constinit std::atomic<int> decay_ms{default_decay_ms};
constinit std::atomic<std::size_t> freed_bytes{0};
constinit std::atomic<bool> running{false};
constinit os::Lock purging_now;

void tick() {
  const os::Hold hold(purging_now);
  const auto now = static_cast<std::uint8_t>(decay_tick.fetch_add(1, relaxed) + 1);
  for (TierHeap& tier : tiers)
    if (tier.ready()) purge_tier(tier, now, false);
}

bool anything_left() {
  for (const TierHeap& tier : tiers)
    if (tier.ready() && has_dirty(tier)) return true;
  return false;
}

void* run_decay(void*) {
  os::name_this_thread("hmalloc-decay");
  for (bool again = true; again;) {
    freed_bytes.store(0, relaxed);
    os::sleep_ms(static_cast<unsigned>(decay_ms.load(relaxed)));
    tick();
    again = anything_left();
  }
  running.store(false, std::memory_order_release);
  return nullptr;
}

} // namespace

os::Lock& purge_lock() { return purging_now; }

void set_decay_ms(int milliseconds) { decay_ms.store(milliseconds, relaxed); }

void note_freed(std::size_t bytes) { freed_bytes.fetch_add(bytes, relaxed); }

void start_decay_if_due() {
  if (freed_bytes.load(relaxed) < worth_a_thread || decay_ms.load(relaxed) < 0) return;
  if (running.load(relaxed) || running.exchange(true, std::memory_order_acquire)) return;
  if (os::start_thread(run_decay) == 0) return;
  freed_bytes.store(0, relaxed);
  tick();
  running.store(false, std::memory_order_release);
}

void reset_decay() { running.store(false, relaxed); }

} // namespace nearfar::alloc
