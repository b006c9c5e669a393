#include "alloclog/preload/state.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

#include "alloclog/preload/clock.hpp"
#include "alloclog/preload/slot_claim.hpp"

namespace nearfar::alloclog {

constinit ProcessState state{};

namespace {

enum class Setup : std::uint32_t { untried = 0, done, failed };

/// Not cleared in a child, as the state is.
struct {
  std::uint32_t setup; ///< Setup
  SlotUse use;         ///< of the log of this process, or in a child of the parent's
} constinit kept{};

/// Requests that the kernel clears the state in children. Not before libc has set the environment.
Setup set_up() {
  if (environ == nullptr) return Setup::untried;
  const char* path = getenv(variable);
  if (path == nullptr || !open_control(path)) return Setup::failed;
  return madvise(&state, sizeof state, MADV_WIPEONFORK) == 0 ? Setup::done : Setup::failed;
}

bool is_set_up() {
  std::atomic_ref setup(kept.setup);
  auto now = static_cast<Setup>(setup.load(std::memory_order_acquire));
  if (now == Setup::untried) {
    now = set_up();
    setup.store(static_cast<std::uint32_t>(now), std::memory_order_release);
  }
  return now == Setup::done;
}

bool claim(std::uint32_t& clock_period_ns) {
  const SlotUse parent = kept.use;
  kept.use = 0;
  const ClaimedSlot claimed = claim_slot(parent);
  if (claimed.memory == nullptr) return false;
  kept.use = claimed.use;
  clock_period_ns = claimed.clock_period_ns;
  state.slot = claimed.memory;
  state.seen_shift = 64 - seen_bits[0];
  state.freed = parent == 0 ? Entry{0} : freed_entry;
  std::atomic_ref(state.level0)
      .store(reinterpret_cast<Entry*>(claimed.memory + level0_offset), std::memory_order_release);
  return true;
}

} // namespace

[[gnu::noinline, gnu::cold]] bool join_log() {
  std::atomic_ref phase(state.phase);
  auto expected = static_cast<std::uint32_t>(Phase::untried);
  if (phase.load(std::memory_order_relaxed) != expected || environ == nullptr) return false;
  if (!phase.compare_exchange_strong(expected, static_cast<std::uint32_t>(Phase::joining)))
    return false;
  const int saved_errno = errno;
  std::uint32_t clock_period_ns = 0;
  const Phase reached = is_set_up() && claim(clock_period_ns) ? Phase::joined : Phase::off;
  phase.store(static_cast<std::uint32_t>(reached), std::memory_order_release);
  if (clock_period_ns != 0) start_clock(clock_period_ns);
  errno = saved_errno;
  return reached == Phase::joined;
}

} // namespace nearfar::alloclog
