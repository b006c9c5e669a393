// Stores of a program that was compiled with -fsanitize=thread and linked with this library instead
// of ThreadSanitizer's, or by clang with -fsanitize-coverage=bb,trace-stores: the compiler put a
// call before each.
//
// A call comes before its store, so the bytes are taken when the thread calls next, whatever for: at
// the latest with a call by which others may learn of the store (handover.cpp). Other threads record
// it before a store of their own, and before they flush the line or load it.
#include <algorithm>
#include <atomic>
#include <sys/single_threaded.h>

#include "crash/runtime/judging.hpp"
#include "crash/runtime/lock.hpp"
#include "crash/runtime/recording.hpp"

namespace {

using namespace nearfar::crash::runtime;

/// A store that is about to happen, and the code after its call.
struct Coming {
  std::atomic<const void*> at = nullptr; ///< null: nothing is to be recorded
  std::size_t bytes = 0;
  const void* code = nullptr;
  SiteNumber site{};
  Author who{}; ///< of a program with several threads
};
thread_local Coming coming;
std::atomic<bool> is_compiled = false;

/// Those of the threads that live. One thread more is only found by itself.
constexpr int max_threads = 256;
std::atomic<Coming*> of_threads[max_threads];

/// Takes it, unless another thread has. A program with one thread is spared the locked instruction.
bool take(Coming& made, const void* at) {
  if (__libc_single_threaded == 0) return made.at.compare_exchange_strong(at, nullptr);
  made.at.store(nullptr, std::memory_order_relaxed);
  return true;
}

/// Whether it lies in the lines of a range.
bool is_in_lines(const void* store, const Range& range) {
  constexpr std::uintptr_t line = 64;
  const auto first = reinterpret_cast<std::uintptr_t>(range.at) / line;
  const auto last = (reinterpret_cast<std::uintptr_t>(range.at) + range.bytes - 1) / line;
  const auto own = reinterpret_cast<std::uintptr_t>(store) / line;
  return own >= first && own <= last;
}

} // namespace

namespace nearfar::crash::runtime {

void settle_stores() {
  const void* const at = coming.at.load(std::memory_order_relaxed);
  if (at == nullptr || Lock::is_held()) return;
  const std::size_t bytes = coming.bytes;
  const SiteNumber site = coming.site;
  if (!take(coming, at)) return;
  if (judge() == nullptr) settle_stores_of_others(); // the judge does not compare their order
  settle_transaction(coming.code);
  report_store_of(author(), at, bytes, site);
}

void settle_stores_of_others(std::optional<Range> lines) {
  if (seen != Seen::callbacks || __libc_single_threaded != 0) return;
  for (const std::atomic<Coming*>& slot : of_threads) {
    Coming* const other = slot.load();
    if (other == nullptr || other == &coming) continue;
    const void* const stored = other->at.load();
    if (stored == nullptr || (lines && !is_in_lines(stored, *lines))) continue;
    const std::size_t size = other->bytes;
    const SiteNumber site = other->site;
    if (differs_from_log(stored, size) && take(*other, stored))
      report_store_of(other->who, stored, size, site);
  }
}

void begin_callbacks_of_thread() {
  for (std::atomic<Coming*>& slot : of_threads) {
    Coming* none = nullptr;
    if (slot.load() == nullptr && slot.compare_exchange_strong(none, &coming)) return;
  }
}

void end_callbacks_of_thread() {
  settle_stores();
  for (std::atomic<Coming*>& slot : of_threads) {
    Coming* own = &coming;
    if (slot.load() == &coming && slot.compare_exchange_strong(own, nullptr)) return;
  }
}

bool has_callbacks() { return is_compiled; }

} // namespace nearfar::crash::runtime

namespace {

/// Where the program may not store: its handler runs now, not between this call and the store.
void touch(const RecordedRegion& region, const void* store, std::size_t bytes) {
  auto* at = const_cast<char*>(static_cast<const char*>(store));
  const char* const end = std::min(at + bytes, region.start + region.bytes);
  while (at < end) {
    if (!region.is_writable(static_cast<std::size_t>(at - region.start)))
      __atomic_fetch_or(at, char{0}, __ATOMIC_SEQ_CST);
    at = region.start +
         (static_cast<std::size_t>(at - region.start) / RecordedRegion::page_bytes + 1) *
             RecordedRegion::page_bytes;
  }
}

inline void on_init() { is_compiled = true; }
inline void on_read(const void* at, std::size_t bytes, const void* code) {
  if (__builtin_expect(two_hosts.load(std::memory_order_relaxed), 0)) report_load(at, bytes, code);
}
inline void on_write(const void* at, std::size_t bytes, const void* code) {
  if (__builtin_expect(coming.at.load(std::memory_order_relaxed) != nullptr, 0)) settle_stores();
  if (regions.count == 0 || seen != Seen::callbacks) return;
  const RecordedRegion* const region = region_of(at);
  if (region == nullptr) return;
  if (!region->writable || region->denied != nullptr) touch(*region, at, bytes);
  coming.bytes = bytes;
  coming.code = code;
  coming.site = site_of_store(code);
  if (__libc_single_threaded == 0) coming.who = author();
  coming.at.store(at, std::memory_order_release);
}

/// An atomic operation is done: others may learn of its store at once.
inline void on_atomic(const void* at, bool stored) {
  if (stored)
    settle_stores();
  else if (coming.at.load(std::memory_order_relaxed) == at)
    take(coming, at);
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
