/* Reports flushes and fences that a program writes as intrinsics to `nearfar crash run`.
 *
 * How      compile with the flags of `nearfar crash flags compile`, whose nearfar/crash/immintrin.h
 *          comes before the compiler's, or with -include nearfar/crash_intrinsics.h (C or C++).
 *          _mm_clwb, _mm_clflushopt, _mm_clflush, _mm_sfence, _mm_mfence and _mm*_stream_* then
 *          also call the recorder.
 *          Without the recorder in the process the reports are weak symbols that are absent: one
 *          test of a pointer each. _mm_clwb and _mm_clflushopt execute clflush, which needs no
 *          compiler flag, but evicts the line: do not time such a build, and do not ship it.
 * Also     nearfar_crash_begin(n) and nearfar_crash_end(n) around an operation: its end
 *          acknowledges it; the checker reads the count from NEARFAR_CRASH_ACKNOWLEDGED, and, if
 *          threads interleave (`crash run --interleave`), the numbers from NEARFAR_CRASH_OPERATIONS.
 *          nearfar_crash_host(h): the calling thread continues on host h, 0 or 1, of two that share
 *          the pool (`crash run --hosts 2`). Threads begin on host 0.
 */
#ifndef NEARFAR_CRASH_INTRINSICS_H
#define NEARFAR_CRASH_INTRINSICS_H

#include <immintrin.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
__attribute__((weak)) void nearfar_crash_flush(const void* at, size_t bytes);
__attribute__((weak)) void nearfar_crash_fence(void);
__attribute__((weak)) void nearfar_crash_nt_store(const void* at, size_t bytes);
__attribute__((weak)) void nearfar_crash_begin(unsigned long operation);
__attribute__((weak)) void nearfar_crash_end(unsigned long operation);
__attribute__((weak)) void nearfar_crash_host(int host);
#ifdef __cplusplus
}
#endif

/* Macros, so that the call is on the caller's line, and calls nothing without the recorder. */
#define nearfar_crash_begin(operation)                                                             \
  (nearfar_crash_begin ? nearfar_crash_begin(operation) : (void)0)
#define nearfar_crash_end(operation)                                                               \
  (nearfar_crash_end ? nearfar_crash_end(operation) : (void)0)
#define nearfar_crash_host(host) (nearfar_crash_host ? nearfar_crash_host(host) : (void)0)
#define NEARFAR_CRASH_FENCE(instruction)                                                  \
  __extension__({                                                                                  \
    __asm__ volatile(".byte 0x3e\n\t" instruction ::: "memory");                                   \
    if (nearfar_crash_fence) nearfar_crash_fence();                                                \
  })

/* Each instruction has the prefix of the segment DS, which has no effect: by it, the recorder knows
 * that it is reported. Operands are evaluated once. */
#define _mm_clflush(at)                                                                            \
  __extension__({                                                                                  \
    const void* const nearfar_crash_at = (at);                                                     \
    __asm__ volatile(".byte 0x3e\n\tclflush (%0)" : : "r"(nearfar_crash_at) : "memory");           \
    if (nearfar_crash_flush) nearfar_crash_flush(nearfar_crash_at, 1);                             \
  })
#define _mm_clwb(at) _mm_clflush(at)
#define _mm_clflushopt(at) _mm_clflush(at)
#define _mm_sfence() NEARFAR_CRASH_FENCE("sfence")
#define _mm_mfence() NEARFAR_CRASH_FENCE("mfence")

#define NEARFAR_CRASH_STREAM(intrinsic, type, bytes, at, value)                                           \
  __extension__({                                                                                  \
    void* const nearfar_crash_at = (at);                                                           \
    (intrinsic)((type*)nearfar_crash_at, (value));                                                 \
    if (nearfar_crash_nt_store) nearfar_crash_nt_store(nearfar_crash_at, (bytes));                 \
  })
#define _mm_stream_si32(at, value) NEARFAR_CRASH_STREAM(_mm_stream_si32, int, sizeof(int), at, value)
#define _mm_stream_si64(at, value) NEARFAR_CRASH_STREAM(_mm_stream_si64, long long, sizeof(long long), at, value)
#define _mm_stream_si128(at, value) NEARFAR_CRASH_STREAM(_mm_stream_si128, __m128i, sizeof(__m128i), at, value)
#define _mm_stream_pi(at, value) NEARFAR_CRASH_STREAM(_mm_stream_pi, __m64, sizeof(__m64), at, value)
#define _mm_stream_ps(at, value) NEARFAR_CRASH_STREAM(_mm_stream_ps, float, 16, at, value)
#define _mm_stream_pd(at, value) NEARFAR_CRASH_STREAM(_mm_stream_pd, double, 16, at, value)
#define _mm256_stream_si256(at, value) NEARFAR_CRASH_STREAM(_mm256_stream_si256, __m256i, sizeof(__m256i), at, value)
#define _mm256_stream_ps(at, value) NEARFAR_CRASH_STREAM(_mm256_stream_ps, float, 32, at, value)
#define _mm256_stream_pd(at, value) NEARFAR_CRASH_STREAM(_mm256_stream_pd, double, 32, at, value)
#define _mm512_stream_si512(at, value) NEARFAR_CRASH_STREAM(_mm512_stream_si512, __m512i, sizeof(__m512i), at, value)
#define _mm512_stream_ps(at, value) NEARFAR_CRASH_STREAM(_mm512_stream_ps, float, 64, at, value)
#define _mm512_stream_pd(at, value) NEARFAR_CRASH_STREAM(_mm512_stream_pd, double, 64, at, value)

#endif
