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

#include "crash/all_reports.h"

#ifdef __cplusplus
extern "C" {
#endif
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

#endif
