// What code compiled with -fsanitize=thread calls, so that the explorer sees every read and write
// of the structures under test. This file itself is compiled without instrumentation.
//
// Names and signatures are those of LLVM's ThreadSanitizer interface, which GCC shares. The library
// of ThreadSanitizer is not linked.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "crash/arena.hpp"

using nearfar::crash::on_read;
using nearfar::crash::on_write;

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_read_range(void* at, std::size_t bytes) { on_read(at, bytes); }
void __tsan_write_range(void* at, std::size_t bytes) { on_write(at, bytes); }
void __tsan_vptr_read(void** at) { on_read(at, sizeof *at); }
void __tsan_vptr_update(void** at, void*) { on_write(at, sizeof *at); }

#define NEARFAR_ACCESS(bytes)                                                                      \
  void __tsan_read##bytes(void* at) { on_read(at, bytes); }                                        \
  void __tsan_write##bytes(void* at) { on_write(at, bytes); }                                      \
  void __tsan_unaligned_read##bytes(void* at) { on_read(at, bytes); }                              \
  void __tsan_unaligned_write##bytes(void* at) { on_write(at, bytes); }                            \
  void __tsan_volatile_read##bytes(void* at) { on_read(at, bytes); }                               \
  void __tsan_volatile_write##bytes(void* at) { on_write(at, bytes); }
NEARFAR_ACCESS(1)
NEARFAR_ACCESS(2)
NEARFAR_ACCESS(4)
NEARFAR_ACCESS(8)
NEARFAR_ACCESS(16)
#undef NEARFAR_ACCESS

// Atomic operations are replaced by these calls, which must carry them out: always in the strongest
// order, for one thread explores and speed is elsewhere.
#define NEARFAR_ATOMIC_CHANGE(bits, type, name)                                                    \
  type __tsan_atomic##bits##_##name(volatile type* at, type value, int) {                          \
    on_read(const_cast<type*>(at), sizeof *at);                                                    \
    on_write(const_cast<type*>(at), sizeof *at);                                                   \
    return __atomic_##name(at, value, __ATOMIC_SEQ_CST);                                           \
  }
#define NEARFAR_ATOMIC(bits, type)                                                                 \
  type __tsan_atomic##bits##_load(const volatile type* at, int) {                                  \
    on_read(const_cast<const type*>(at), sizeof *at);                                              \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile type* at, type value, int) {                           \
    on_write(const_cast<type*>(at), sizeof *at);                                                   \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                                \
  type __tsan_atomic##bits##_exchange(volatile type* at, type value, int) {                        \
    on_read(const_cast<type*>(at), sizeof *at);                                                    \
    on_write(const_cast<type*>(at), sizeof *at);                                                   \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                       \
  }                                                                                                \
  NEARFAR_ATOMIC_CHANGE(bits, type, fetch_add)                                                     \
  NEARFAR_ATOMIC_CHANGE(bits, type, fetch_sub)                                                     \
  NEARFAR_ATOMIC_CHANGE(bits, type, fetch_and)                                                     \
  NEARFAR_ATOMIC_CHANGE(bits, type, fetch_or)                                                      \
  NEARFAR_ATOMIC_CHANGE(bits, type, fetch_xor)                                                     \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* at, type* expected, type value, \
                                                    int, int) {                                    \
    on_read(const_cast<type*>(at), sizeof *at);                                                    \
    on_write(const_cast<type*>(at), sizeof *at);                                                   \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST,               \
                                       __ATOMIC_SEQ_CST);                                          \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* at, type* expected, type value,   \
                                                  int, int) {                                      \
    return __tsan_atomic##bits##_compare_exchange_strong(at, expected, value, 0, 0);               \
  }                                                                                                \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* at, type expected, type value,    \
                                                  int, int) {                                      \
    __tsan_atomic##bits##_compare_exchange_strong(at, &expected, value, 0, 0);                     \
    return expected;                                                                               \
  }
NEARFAR_ATOMIC(8, std::uint8_t)
NEARFAR_ATOMIC(16, std::uint16_t)
NEARFAR_ATOMIC(32, std::uint32_t)
NEARFAR_ATOMIC(64, std::uint64_t)
#undef NEARFAR_ATOMIC
#undef NEARFAR_ATOMIC_CHANGE

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

// Calls of the C library read and write too; the linker sends them here (--wrap).
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __real_memmove(void* to, const void* from, std::size_t bytes);
void* __real_memset(void* at, int value, std::size_t bytes);
int __real_memcmp(const void* a, const void* b, std::size_t bytes);

void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  on_read(from, bytes);
  on_write(to, bytes);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  on_read(from, bytes);
  on_write(to, bytes);
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* at, int value, std::size_t bytes) {
  on_write(at, bytes);
  return __real_memset(at, value, bytes);
}
int __wrap_memcmp(const void* a, const void* b, std::size_t bytes) {
  on_read(a, bytes);
  on_read(b, bytes);
  return __real_memcmp(a, b, bytes);
}
int __wrap_bcmp(const void* a, const void* b, std::size_t bytes) {
  return __wrap_memcmp(a, b, bytes);
}
}
