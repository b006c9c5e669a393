/* Reports of the intrinsics of xmmintrin.h. */
#ifndef NEARFAR_CRASH_XMM_REPORTS_H
#define NEARFAR_CRASH_XMM_REPORTS_H

#include "reports.h"

#define _mm_sfence() nearfar_crash_sfence()
#define _mm_stream_pi(at, value) NEARFAR_CRASH_STREAM(_mm_stream_pi, __m64, sizeof(__m64), at, value)
#define _mm_stream_ps(at, value) NEARFAR_CRASH_STREAM(_mm_stream_ps, float, 16, at, value)

#endif
