// Stores of a program that was compiled with -fsanitize=thread and linked with this library instead
// of ThreadSanitizer's, or by clang with -fsanitize-coverage=bb,trace-stores: the compiler put a
// call before each.
//
// A call comes before its store, so the bytes are taken when the thread calls next, whatever for.
#include <atomic>

#include "crash/runtime/recording.hpp"

namespace {

using namespace nearfar::crash::runtime;

/// A store that is about to happen, and the code after its call.
struct Coming {
  const void* at = nullptr;
  std::size_t bytes = 0;
  const void* code = nullptr;
};
thread_local Coming coming;
std::atomic<bool> called = false;

} // namespace

namespace nearfar::crash::runtime {

void settle_stores() {
  if (coming.at == nullptr) return;
  const Coming made = coming;
  coming.at = nullptr;
  report_store(EventKind::store, made.at, made.bytes, made.code);
}

bool has_callbacks() { return called; }

} // namespace nearfar::crash::runtime

namespace {

inline void on_read(const void* at, std::size_t bytes, const void* code) {
  if (__builtin_expect(two_hosts.load(std::memory_order_relaxed), 0)) report_load(at, bytes, code);
}
inline void on_write(const void* at, std::size_t bytes, const void* code) {
  // Read before it is written: threads would take the line from each other.
  if (__builtin_expect(!called.load(std::memory_order_relaxed), 0)) called = true;
  if (__builtin_expect(coming.at != nullptr, 0)) settle_stores();
  if (regions.count == 0 || seen != Seen::callbacks || region_of(at) == nullptr) return;
  coming = {at, bytes, code};
}

/// An exchange has failed that was announced as a write.
inline void on_no_write(const void* at) {
  if (coming.at == at) coming.at = nullptr;
}

} // namespace

#include "trace/instrumented/callbacks.hpp"

// clang's -fsanitize-coverage=trace-stores: the names are those of its documentation.
extern "C" {
#define NEARFAR_STORE(bytes)                                                                       \
  [[gnu::visibility("default")]] void __sanitizer_cov_store##bytes(void* at) {                     \
    on_write(at, bytes, __builtin_return_address(0));                                              \
  }
NEARFAR_STORE(1)
NEARFAR_STORE(2)
NEARFAR_STORE(4)
NEARFAR_STORE(8)
NEARFAR_STORE(16)
#undef NEARFAR_STORE
}
