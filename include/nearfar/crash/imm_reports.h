/* Reports of the intrinsics of immintrin.h. */
#ifndef NEARFAR_CRASH_IMM_REPORTS_H
#define NEARFAR_CRASH_IMM_REPORTS_H

#include "reports.h"

#define _mm_clwb(at) nearfar_crash_clwb(at)
#define _mm_clflushopt(at) nearfar_crash_clwb(at)
#define _mm256_stream_si256(at, value) NEARFAR_CRASH_STREAM(_mm256_stream_si256, __m256i, sizeof(__m256i), at, value)
#define _mm256_stream_ps(at, value) NEARFAR_CRASH_STREAM(_mm256_stream_ps, float, 32, at, value)
#define _mm256_stream_pd(at, value) NEARFAR_CRASH_STREAM(_mm256_stream_pd, double, 32, at, value)
#define _mm512_stream_si512(at, value) NEARFAR_CRASH_STREAM(_mm512_stream_si512, __m512i, sizeof(__m512i), at, value)
#define _mm512_stream_ps(at, value) NEARFAR_CRASH_STREAM(_mm512_stream_ps, float, 64, at, value)
#define _mm512_stream_pd(at, value) NEARFAR_CRASH_STREAM(_mm512_stream_pd, double, 64, at, value)

#endif
