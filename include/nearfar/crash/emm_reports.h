/* Reports of the intrinsics of emmintrin.h. */
#ifndef NEARFAR_CRASH_EMM_REPORTS_H
#define NEARFAR_CRASH_EMM_REPORTS_H

#include "reports.h"

#define _mm_clflush(at) nearfar_crash_clflush(at)
#define _mm_mfence() nearfar_crash_mfence()
#define _mm_stream_si32(at, value) NEARFAR_CRASH_STREAM(_mm_stream_si32, int, sizeof(int), at, value)
#define _mm_stream_si64(at, value) NEARFAR_CRASH_STREAM(_mm_stream_si64, long long, sizeof(long long), at, value)
#define _mm_stream_si128(at, value) NEARFAR_CRASH_STREAM(_mm_stream_si128, __m128i, sizeof(__m128i), at, value)
#define _mm_stream_pd(at, value) NEARFAR_CRASH_STREAM(_mm_stream_pd, double, 16, at, value)

#endif
