// Stores of a program that was compiled with -fsanitize=thread and linked with this library instead
// of ThreadSanitizer's, or by clang with -fsanitize-coverage=bb,trace-stores: the compiler put a
// call before each.
//
// A call comes before its store, so the bytes are taken when the thread calls next, whatever for: at
// the latest with a call by which others may learn of the store (handover.cpp). Other threads record
// it before a store of their own, and before they flush the line or load it.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <sys/single_threaded.h>

#include "crash/runtime/coverage.hpp"
#include "crash/runtime/events.hpp"
#include "crash/runtime/judging.hpp"
#include "crash/runtime/lock.hpp"
#include "crash/runtime/recording.hpp"

namespace {

using namespace nearfar::crash::runtime;

/// A store that is about to happen, and the code after its call. Recorded and forgotten under the lock.
struct Coming {
  std::atomic<const void*> at = nullptr; ///< null: nothing is to be recorded
  std::size_t bytes = 0;
  const void* code = nullptr;
  SiteNumber site{};
  Author who{};          ///< of a program with several threads
  bool is_known = false; ///< another thread has recorded it
};
thread_local Coming coming;
thread_local bool settles = false;
std::atomic<bool> is_compiled = false;

/// Those of the threads that live. One thread more is only found by itself.
constexpr int max_threads = 256;
std::atomic<Coming*> of_threads[max_threads];
std::atomic<int> used_slots = 0; ///< from the first on

/// Whether it lies in the lines of a range.
bool is_in_lines(const void* store, const Range& range) {
  constexpr std::uintptr_t line = 64;
  const auto first = reinterpret_cast<std::uintptr_t>(range.at) / line;
  const auto last = (reinterpret_cast<std::uintptr_t>(range.at) + range.bytes - 1) / line;
  const auto own = reinterpret_cast<std::uintptr_t>(store) / line;
  return own >= first && own <= last;
}

/// Calls visit(store of another thread that is about to happen, or has) for those in lines of a range.
template <class Visit>
void for_each_coming(std::optional<Range> lines, const Visit& visit) {
  if (seen != Seen::callbacks || __libc_single_threaded != 0) return;
  for (int i = 0; i < used_slots; ++i) {
    Coming* const other = of_threads[i].load();
    if (other == nullptr || other == &coming) continue;
    const void* const at = other->at.load();
    if (at != nullptr && (!lines || is_in_lines(at, *lines))) visit(*other, at);
  }
}

/// The lock is held. A store that was not made yet may seem to be: its thread records it again.
void put_coming_of_others(std::optional<Range> lines) {
  if (is_unrecorded()) return;
  for_each_coming(lines, [](Coming& other, const void* at) {
    if (judge() != nullptr ? other.is_known : !differs_from_log(at, other.bytes)) return;
    put_store(EventKind::store, other.who, at, other.bytes, other.site);
    other.is_known = true;
  });
}

/// The lock is held. Records the store of the calling thread, unless another thread has recorded it as it
/// is now.
void put_coming() {
  const void* const at = coming.at.load(std::memory_order_relaxed);
  if (at == nullptr) return; // a signal handler has recorded it
  coming.at.store(nullptr, std::memory_order_relaxed);
  if (is_unrecorded()) return;
  if (judge() == nullptr) put_coming_of_others({}); // the judge does not compare their order
  if (!coming.is_known || (judge() == nullptr && differs_from_log(at, coming.bytes)))
    put_store(EventKind::store, author(), at, coming.bytes, coming.site);
  else if (judge() != nullptr)
    keep_store(at, coming.bytes);
}

void settle_transaction_before_coming() {
  if (coming.at.load(std::memory_order_relaxed) == nullptr || settles) return;
  settles = true; // what is recorded here calls settle_stores(), too
  settle_transaction(coming.code);
  settles = false;
}

} // namespace

namespace nearfar::crash::runtime {

void settle_stores() {
  if (coming.at.load(std::memory_order_relaxed) == nullptr || settles || Lock::is_held()) return;
  settle_transaction_before_coming();
  const Lock locked;
  put_coming();
}

void settle_stores_of_others(std::optional<Range> lines) {
  if (seen != Seen::callbacks || __libc_single_threaded != 0) return;
  const Lock locked;
  put_coming_of_others(lines);
}

void settle_in_copy(const RecordedRegion& region, std::uint64_t into, std::span<char> copy) {
  const char* const start = region.start + into;
  const Range lines{start, copy.size()};
  put_coming_of_others(lines);
  for_each_coming(lines, [&](const Coming& other, const void* stored) {
    const auto* const at = static_cast<const char*>(stored);
    const char* const first = std::max(at, start);
    const char* const end = std::min(at + other.bytes, start + copy.size());
    if (first < end)
      std::memcpy(copy.data() + (first - start),
                  recording.shadow + region.offset + (first - region.start),
                  static_cast<std::size_t>(end - first));
  });
}

void begin_callbacks_of_thread() {
  const Lock locked;
  for (int i = 0; i < max_threads; ++i) {
    if (of_threads[i].load() != nullptr) continue;
    of_threads[i] = &coming;
    used_slots = std::max(used_slots.load(), i + 1);
    return;
  }
}

void end_callbacks_of_thread() {
  settle_stores();
  const Lock locked;
  for (std::atomic<Coming*>& slot : of_threads)
    if (slot.load() == &coming) slot = nullptr;
}

bool has_callbacks() { return is_compiled; }

} // namespace nearfar::crash::runtime

namespace {

/// Faults where the program may not store: its handler runs now, not between this call and the store.
[[gnu::noinline]] void touch(const RecordedRegion& region, const void* store, std::size_t bytes) {
  auto* at = const_cast<char*>(static_cast<const char*>(store));
  const char* const end = std::min(at + bytes, region.start + region.bytes);
  while (at < end) {
    if (!region.is_writable(static_cast<std::size_t>(at - region.start)))
      __atomic_fetch_or(at, char{0}, __ATOMIC_SEQ_CST);
    at =
        region.start + (static_cast<std::size_t>(at - region.start) / nearfar::os::page_bytes + 1) *
                           nearfar::os::page_bytes;
  }
}

/// The region of a store that is recorded, or null.
inline const RecordedRegion* recorded_region(const void* at) {
  return regions.count == 0 || seen != Seen::callbacks ? nullptr : region_of(at);
}

inline void on_init() { is_compiled = true; }
inline void on_read(const void* at, std::size_t bytes, const void* code) {
  if (__builtin_expect(two_hosts.load(std::memory_order_relaxed), 0)) report_load(at, bytes, code);
}
inline void on_write(const void* at, std::size_t bytes, const void* code) {
  const RecordedRegion* const region = recorded_region(at);
  if (region == nullptr) {
    if (__builtin_expect(coming.at.load(std::memory_order_relaxed) != nullptr, 0)) settle_stores();
    return;
  }
  if (!region->writable || region->denied != nullptr) touch(*region, at, bytes);
  const auto into = static_cast<const char*>(at) - region->start;
  expect_store(region->offset + static_cast<std::uint64_t>(into));
  settle_transaction_before_coming();
  const Lock locked;
  put_coming();
  const SiteNumber site = site_of_store(code);
  coming.bytes = bytes;
  coming.code = code;
  coming.site = site;
  coming.is_known = false;
  if (__libc_single_threaded == 0) coming.who = author();
  coming.at.store(at, std::memory_order_release);
}

/// Other threads may learn of the store at once, and store next: it is made under the lock.
template <class Operation>
void on_atomic(const void* at, std::size_t bytes, const void* code, const Operation& operation) {
  settle_stores();
  const RecordedRegion* const region = recorded_region(at);
  if (region == nullptr || Lock::is_held()) {
    operation();
    return;
  }
  __atomic_fetch_or(const_cast<char*>(static_cast<const char*>(at)), char{0}, __ATOMIC_SEQ_CST);
  settle_transaction(code);
  const Lock locked;
  const SiteNumber site = site_of_store(code);
  if (judge() == nullptr) put_coming_of_others({});
  if (operation() && !is_unrecorded()) put_store(EventKind::store, author(), at, bytes, site);
}

} // namespace

#include "trace/instrumented/callbacks.hpp"

// clang's -fsanitize-coverage=trace-stores: the names are those of its documentation.
extern "C" {
#define NEARFAR_STORE(bytes)                                                                       \
  [[gnu::visibility("default")]] void __sanitizer_cov_store##bytes(void* at) {                     \
    if (!is_compiled.load(std::memory_order_relaxed)) is_compiled = true;                          \
    on_write(at, bytes, __builtin_return_address(0));                                              \
  }
NEARFAR_STORE(1)
NEARFAR_STORE(2)
NEARFAR_STORE(4)
NEARFAR_STORE(8)
NEARFAR_STORE(16)
#undef NEARFAR_STORE
}
