// State of each thread, in static thread-local memory: small, because libc takes it from the stacks
// of threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::alloclog {

struct ThreadState {
  std::uintptr_t stack_low; ///< [stack_low, stack_high) is readable; empty at first
  std::uintptr_t stack_high;
  std::int64_t distance; ///< bytes to the next sampled one
  std::uint64_t random;  ///< 0: not seeded
};

inline thread_local ThreadState thread_state [[gnu::tls_model("initial-exec")]] = {};

} // namespace nearfar::alloclog
