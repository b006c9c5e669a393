// The functions that code compiled with -fsanitize=thread calls, to observe its reads and writes.
//
// Names and signatures are those of LLVM's ThreadSanitizer interface, which GCC shares; its library
// is not linked. Included by one file of a program or library, which defines before it, in this
// namespace scope, on_read(at, bytes, code) and on_write(at, bytes, code): called before the
// access, `code` being the return address into the program; and on_atomic(at, bytes, code, operation),
// called in place of on_write() where an atomic operation stores: it must call operation(), which
// returns false if an exchange has failed; and on_init(), called when a module that is compiled so is
// loaded. That file is compiled without instrumentation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trace/instrumented/wide_atomics.hpp"

#define NEARFAR_CODE __builtin_return_address(0)
#define NEARFAR_CALLBACK [[gnu::visibility("default")]]

extern "C" {

NEARFAR_CALLBACK void __tsan_init() { on_init(); }
NEARFAR_CALLBACK void __tsan_func_entry(void*) {}
NEARFAR_CALLBACK void __tsan_func_exit() {}
NEARFAR_CALLBACK void __tsan_read_range(void* at, std::size_t bytes) {
  on_read(at, bytes, NEARFAR_CODE);
}
NEARFAR_CALLBACK void __tsan_write_range(void* at, std::size_t bytes) {
  on_write(at, bytes, NEARFAR_CODE);
}
NEARFAR_CALLBACK void __tsan_vptr_read(void** at) { on_read(at, sizeof *at, NEARFAR_CODE); }
NEARFAR_CALLBACK void __tsan_vptr_update(void** at, void*) {
  on_write(at, sizeof *at, NEARFAR_CODE);
}

#define NEARFAR_ACCESS(bytes)                                                                      \
  NEARFAR_CALLBACK void __tsan_read##bytes(void* at) { on_read(at, bytes, NEARFAR_CODE); }         \
  NEARFAR_CALLBACK void __tsan_write##bytes(void* at) { on_write(at, bytes, NEARFAR_CODE); }       \
  NEARFAR_CALLBACK void __tsan_unaligned_read##bytes(void* at) {                                   \
    on_read(at, bytes, NEARFAR_CODE);                                                              \
  }                                                                                                \
  NEARFAR_CALLBACK void __tsan_unaligned_write##bytes(void* at) {                                  \
    on_write(at, bytes, NEARFAR_CODE);                                                             \
  }                                                                                                \
  NEARFAR_CALLBACK void __tsan_volatile_read##bytes(void* at) {                                    \
    on_read(at, bytes, NEARFAR_CODE);                                                              \
  }                                                                                                \
  NEARFAR_CALLBACK void __tsan_volatile_write##bytes(void* at) {                                   \
    on_write(at, bytes, NEARFAR_CODE);                                                             \
  }
NEARFAR_ACCESS(1)
NEARFAR_ACCESS(2)
NEARFAR_ACCESS(4)
NEARFAR_ACCESS(8)
NEARFAR_ACCESS(16)
#undef NEARFAR_ACCESS

// Atomic operations are replaced by these calls, which must carry them out: always in the strongest
// order, for one thread explores and speed is elsewhere.
#define NEARFAR_ATOMIC_CHANGE(bits, type, builtin, name)                                           \
  NEARFAR_CALLBACK type __tsan_atomic##bits##_##name(volatile type* at, type value, int) {         \
    type result{};                                                                                 \
    on_read(const_cast<type*>(at), sizeof *at, NEARFAR_CODE);                                      \
    on_atomic(const_cast<type*>(at), sizeof *at, NEARFAR_CODE, [&] {                               \
      result = builtin##name(at, value, __ATOMIC_SEQ_CST);                                         \
      return true;                                                                                 \
    });                                                                                            \
    return result;                                                                                 \
  }
// The return address is that of the function that the program calls: none of these calls another.
#define NEARFAR_EXCHANGE_IF_EQUAL(type, builtin, expected)                                         \
  type found = expected;                                                                           \
  bool done = false;                                                                               \
  on_read(const_cast<type*>(at), sizeof *at, NEARFAR_CODE);                                        \
  on_atomic(const_cast<type*>(at), sizeof *at, NEARFAR_CODE, [&] {                                 \
    return done = builtin##compare_exchange_n(at, &found, value, false, __ATOMIC_SEQ_CST,          \
                                              __ATOMIC_SEQ_CST);                                   \
  });
#define NEARFAR_COMPARE_EXCHANGE(bits, type, builtin, name)                                        \
  NEARFAR_CALLBACK int __tsan_atomic##bits##_compare_exchange_##name(                              \
      volatile type* at, type* expected, type value, int, int) {                                   \
    NEARFAR_EXCHANGE_IF_EQUAL(type, builtin, *expected)                                            \
    if (!done) *expected = found;                                                                  \
    return done;                                                                                   \
  }
#define NEARFAR_ATOMIC(bits, type, builtin)                                                        \
  NEARFAR_CALLBACK type __tsan_atomic##bits##_load(const volatile type* at, int) {                 \
    on_read(const_cast<const type*>(at), sizeof *at, NEARFAR_CODE);                                \
    return builtin##load_n(at, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                \
  NEARFAR_CALLBACK void __tsan_atomic##bits##_store(volatile type* at, type value, int) {          \
    on_atomic(const_cast<type*>(at), sizeof *at, NEARFAR_CODE, [&] {                               \
      builtin##store_n(at, value, __ATOMIC_SEQ_CST);                                               \
      return true;                                                                                 \
    });                                                                                            \
  }                                                                                                \
  NEARFAR_CALLBACK type __tsan_atomic##bits##_exchange(volatile type* at, type value, int) {       \
    type result{};                                                                                 \
    on_read(const_cast<type*>(at), sizeof *at, NEARFAR_CODE);                                      \
    on_atomic(const_cast<type*>(at), sizeof *at, NEARFAR_CODE, [&] {                               \
      result = builtin##exchange_n(at, value, __ATOMIC_SEQ_CST);                                   \
      return true;                                                                                 \
    });                                                                                            \
    return result;                                                                                 \
  }                                                                                                \
  NEARFAR_ATOMIC_CHANGE(bits, type, builtin, fetch_add)                                            \
  NEARFAR_ATOMIC_CHANGE(bits, type, builtin, fetch_sub)                                            \
  NEARFAR_ATOMIC_CHANGE(bits, type, builtin, fetch_and)                                            \
  NEARFAR_ATOMIC_CHANGE(bits, type, builtin, fetch_or)                                             \
  NEARFAR_ATOMIC_CHANGE(bits, type, builtin, fetch_xor)                                            \
  NEARFAR_ATOMIC_CHANGE(bits, type, builtin, fetch_nand)                                           \
  NEARFAR_COMPARE_EXCHANGE(bits, type, builtin, strong)                                            \
  NEARFAR_COMPARE_EXCHANGE(bits, type, builtin, weak)                                              \
  NEARFAR_CALLBACK type __tsan_atomic##bits##_compare_exchange_val(                                \
      volatile type* at, type expected, type value, int, int) {                                    \
    NEARFAR_EXCHANGE_IF_EQUAL(type, builtin, expected)                                             \
    return found;                                                                                  \
  }
NEARFAR_ATOMIC(8, std::uint8_t, __atomic_)
NEARFAR_ATOMIC(16, std::uint16_t, __atomic_)
NEARFAR_ATOMIC(32, std::uint32_t, __atomic_)
NEARFAR_ATOMIC(64, std::uint64_t, __atomic_)
NEARFAR_ATOMIC(128, nearfar::trace::Wide, nearfar::trace::wide_atomic_)
#undef NEARFAR_ATOMIC
#undef NEARFAR_ATOMIC_CHANGE
#undef NEARFAR_COMPARE_EXCHANGE
#undef NEARFAR_EXCHANGE_IF_EQUAL

NEARFAR_CALLBACK void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
NEARFAR_CALLBACK void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
}

#undef NEARFAR_CALLBACK
#undef NEARFAR_CODE
