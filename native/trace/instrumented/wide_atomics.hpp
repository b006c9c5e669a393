// Atomic operations on 16 bytes, by the names of the compiler's built-in functions, which would call
// libatomic: a library that is loaded into programs must not need another one.
//
// Requires       cmpxchg16b (every x86-64 processor since 2006), as such programs do.
// Order          always sequentially consistent; the order that is asked for is ignored.
// Thread safety  all functions
#pragma once

#include <immintrin.h>

namespace nearfar::trace {

__extension__ using Wide = unsigned __int128;

/// Returns what was there; `value` is there now if that was `expected`.
[[gnu::target("cx16")]] inline Wide exchange_if(volatile Wide* at, Wide expected, Wide value) {
  return __sync_val_compare_and_swap(at, expected, value);
}

/// Loads and stores of 16 aligned bytes are atomic on processors with AVX (Intel SDM vol. 3A, 9.1.1;
/// AMD64 APM vol. 2, 7.3.2). Others store to load, so that memory must be writable.
inline Wide wide_atomic_load_n(const volatile Wide* at, int) {
  if (!__builtin_cpu_supports("avx")) return exchange_if(const_cast<volatile Wide*>(at), 0, 0);
  const __m128i loaded =
      *reinterpret_cast<const volatile __m128i*>(const_cast<const volatile Wide*>(at));
  Wide value;
  __builtin_memcpy(&value, &loaded, sizeof value);
  return value;
}

/// Stores change(what is there), and returns what was there.
template <class Change>
Wide change_wide(volatile Wide* at, const Change& change) {
  Wide before = wide_atomic_load_n(at, 0);
  for (;;) {
    const Wide found = exchange_if(at, before, change(before));
    if (found == before) return before;
    before = found;
  }
}

inline Wide wide_atomic_exchange_n(volatile Wide* at, Wide value, int) {
  return change_wide(at, [value](Wide) { return value; });
}
inline void wide_atomic_store_n(volatile Wide* at, Wide value, int order) {
  wide_atomic_exchange_n(at, value, order);
}
inline bool wide_atomic_compare_exchange_n(volatile Wide* at, Wide* expected, Wide value, bool, int,
                                           int) {
  const Wide found = exchange_if(at, *expected, value);
  const bool done = found == *expected;
  *expected = found;
  return done;
}
inline Wide wide_atomic_fetch_add(volatile Wide* at, Wide value, int) {
  return change_wide(at, [value](Wide before) { return before + value; });
}
inline Wide wide_atomic_fetch_sub(volatile Wide* at, Wide value, int) {
  return change_wide(at, [value](Wide before) { return before - value; });
}
inline Wide wide_atomic_fetch_and(volatile Wide* at, Wide value, int) {
  return change_wide(at, [value](Wide before) { return before & value; });
}
inline Wide wide_atomic_fetch_or(volatile Wide* at, Wide value, int) {
  return change_wide(at, [value](Wide before) { return before | value; });
}
inline Wide wide_atomic_fetch_xor(volatile Wide* at, Wide value, int) {
  return change_wide(at, [value](Wide before) { return before ^ value; });
}
inline Wide wide_atomic_fetch_nand(volatile Wide* at, Wide value, int) {
  return change_wide(at, [value](Wide before) { return ~(before & value); });
}

} // namespace nearfar::trace
