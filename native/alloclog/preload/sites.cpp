#include "alloclog/preload/sites.hpp"

#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nearfar::alloclog {

namespace {

/// Return addresses, innermost first.
struct CallChain {
  std::uintptr_t callers[max_frames];
  unsigned length = 0;
  std::uint64_t hash = 0;

  void add(std::uintptr_t caller) {
    callers[length++] = caller;
    hash = chain_hash(hash, caller);
  }
};

constexpr std::uintptr_t page = 1 << page_bits;
constexpr std::uint8_t failures_to_cut = 32;

constexpr std::uintptr_t page_of(std::uintptr_t address) { return address & ~(page - 1); }

/// Whether the 8 bytes at an aligned address can be read: rt_sigprocmask() copies its set before it
/// rejects the invalid operation. Every sandbox allows this call, which changes nothing.
bool is_readable(std::uintptr_t address) {
  constexpr int invalid = -1;
  constexpr std::size_t set_bytes = 8;
  const int saved_errno = errno;
  const long result = syscall(SYS_rt_sigprocmask, invalid, address, nullptr, set_bytes);
  const bool readable = result == -1 && errno == EINVAL;
  errno = saved_errno;
  return readable;
}

bool is_readable_range(std::uintptr_t begin, std::uintptr_t end) {
  for (std::uintptr_t at = page_of(begin); at < end; at += page)
    if (!is_readable(at)) return false;
  return true;
}

/// Records the stack that contains a frame: this thread's, deeper than before, or another one.
void learn_stack(ThreadState& thread, std::uintptr_t frame) {
  constexpr std::uintptr_t farthest = 1 << 18; // of what is looked at
  const bool is_deeper = frame < thread.stack_low && thread.stack_low - frame < farthest &&
                         is_readable_range(frame, thread.stack_low);
  std::uintptr_t high = is_deeper ? thread.stack_high : page_of(frame) + page;
  while (high - frame < farthest && is_readable(high))
    high += page;
  thread.stack_low = page_of(frame);
  thread.stack_high = high;
}

/// Whether an address follows a call instruction of the program or a library.
bool follows_call(std::uintptr_t address) {
  constexpr std::uintptr_t longest_call = 8;
  dl_find_object object;
  if (_dl_find_object(reinterpret_cast<void*>(address), &object) != 0) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(object.dlfo_map_start);
  if (address < begin + longest_call) return false;
  return is_readable((address - longest_call) & ~(longest_call - 1)) &&
         is_readable((address - 1) & ~(longest_call - 1)) && follows_call_instruction(address);
}

constexpr std::size_t line_words = 8;

/// The number of a chain with this hash; 0 if it is unknown. It may be where fewer bits of the hash
/// were the index.
Entry seen_number(std::uint64_t hash) {
  for (const unsigned bits : seen_bits) {
    const std::uint64_t* line = &state.seen[hash >> (64 - bits) & ~(line_words - 1)];
    for (std::size_t i = 0; i < line_words; ++i)
      if (const Entry number = number_in(__atomic_load_n(&line[i], __ATOMIC_RELAXED), hash);
          number != 0)
        return number;
  }
  return 0;
}

/// Stores a chain where the fast path looks for it; moves the previous one to another place in the
/// line, if there is one.
void remember(std::uint64_t hash, Entry number) {
  const std::size_t home = hash >> state.seen_shift;
  const std::uint64_t before = __atomic_exchange_n(
      &state.seen[home], (hash & ~std::uint64_t{site_mask}) | number, __ATOMIC_RELAXED);
  if (before == 0) return;
  std::uint64_t* line = &state.seen[home & ~(line_words - 1)];
  for (std::size_t i = 0; i < line_words; ++i) {
    std::uint64_t free = 0;
    if (std::atomic_ref(line[i]).compare_exchange_strong(free, before)) return;
  }
}

/// More sites have more places: at most one in four is taken.
void grow_seen(std::uint32_t sites) {
  unsigned bits = seen_bits[0];
  for (const unsigned each : seen_bits)
    if (sites >= (1u << bits) / 4) bits = each;
  __atomic_store_n(&state.seen_shift, static_cast<std::uint16_t>(64 - bits), __ATOMIC_RELAXED);
}

Entry new_site(const CallChain& chain) {
  std::atomic_ref count(header().site_count);
  if (count.load(std::memory_order_relaxed) >= other_sites - 1u) return other_sites;
  const std::uint32_t number = count.fetch_add(1) + 1;
  if (number >= other_sites) return other_sites;
  grow_seen(number);
  SiteRecord& site = site_record(static_cast<Entry>(number));
  for (unsigned i = 1; i < chain.length; ++i)
    site.chain[i] = chain.callers[i];
  std::atomic_ref(site.chain[0]).store(chain.callers[0], std::memory_order_release);
  return static_cast<Entry>(number);
}

/// The part of a chain that consists of return addresses; the first address is one.
CallChain checked(const CallChain& chain) {
  CallChain result;
  result.add(chain.callers[0]);
  while (result.length < chain.length && follows_call(chain.callers[result.length]))
    result.add(chain.callers[result.length]);
  return result;
}

/// Counts a chain that fails after `length` frames, and cuts later ones there.
void learn_limit(std::uintptr_t caller, unsigned length) {
  ChainLimit& limit = chain_limit(caller);
  if (++limit.failures < failures_to_cut) return;
  limit = {0, static_cast<std::uint8_t>(max_frames - length)};
}

} // namespace

Entry find_site(CallSite site) {
  CallChain chain;
  const auto add = [&chain](std::uintptr_t caller) { chain.add(caller); };
  if (!walk_chain(site, add)) {
    learn_stack(thread_state, reinterpret_cast<std::uintptr_t>(site.frame));
    walk_chain(site, add);
  }
  if (const Entry number = seen_number(chain.hash); number != 0) {
    remember(chain.hash, number);
    return number;
  }
  std::atomic_ref(header().slow_lookups).fetch_add(1, std::memory_order_relaxed);
  const CallChain good = checked(chain);
  if (good.length < chain.length) learn_limit(chain.callers[0], good.length);
  Entry number = seen_number(good.hash);
  if (number == 0) {
    number = new_site(good);
    remember(good.hash, number);
  }
  if (good.hash != chain.hash) remember(chain.hash, number);
  return number;
}

} // namespace nearfar::alloclog
