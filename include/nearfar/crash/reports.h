/* Calls of the recorder: they are weak, and absent without the recorder in the process: one test of a
 * pointer each.
 *
 * Each instruction has the prefix of the segment DS, which has no effect: by it, the recorder knows
 * that it is reported. Operands are evaluated once.
 */
#ifndef NEARFAR_CRASH_REPORTS_H
#define NEARFAR_CRASH_REPORTS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
__attribute__((weak)) void nearfar_crash_flush(const void* at, size_t bytes);
__attribute__((weak)) void nearfar_crash_ordered_flush(const void* at);
__attribute__((weak)) void nearfar_crash_fence(void);
__attribute__((weak)) void nearfar_crash_nt_store(const void* at, size_t bytes);
#ifdef __cplusplus
}
#endif

/* Functions, for a program may write ::_mm_clwb(p). They are a part of the caller's code. */
#define NEARFAR_CRASH_INLINE static __inline__ __attribute__((__always_inline__, __unused__))

#define NEARFAR_CRASH_CLFLUSH(at)                                                                  \
  __asm__ volatile(".byte 0x3e\n\tclflush (%0)" : : "r"(at) : "memory")

/* It needs no fence, unlike the others. */
NEARFAR_CRASH_INLINE void nearfar_crash_clflush(const void* at) {
  NEARFAR_CRASH_CLFLUSH(at);
  if (nearfar_crash_ordered_flush) nearfar_crash_ordered_flush(at);
}
/* clwb and clflushopt require a compiler flag, which clflush does not. */
NEARFAR_CRASH_INLINE void nearfar_crash_clwb(const void* at) {
  NEARFAR_CRASH_CLFLUSH(at);
  if (nearfar_crash_flush) nearfar_crash_flush(at, 1);
}
NEARFAR_CRASH_INLINE void nearfar_crash_sfence(void) {
  __asm__ volatile(".byte 0x3e\n\tsfence" : : : "memory");
  if (nearfar_crash_fence) nearfar_crash_fence();
}
NEARFAR_CRASH_INLINE void nearfar_crash_mfence(void) {
  __asm__ volatile(".byte 0x3e\n\tmfence" : : : "memory");
  if (nearfar_crash_fence) nearfar_crash_fence();
}

/* A macro, for the intrinsic can require a compiler flag that only its caller has. */
#define NEARFAR_CRASH_STREAM(intrinsic, type, bytes, at, value)                                           \
  __extension__({                                                                                  \
    void* const nearfar_crash_at = (at);                                                           \
    (intrinsic)((type*)nearfar_crash_at, (value));                                                 \
    if (nearfar_crash_nt_store) nearfar_crash_nt_store(nearfar_crash_at, (bytes));                 \
  })

#endif
