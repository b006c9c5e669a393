/* The header of the compiler, and reports of its flushes, fences and non-temporal stores. */
#ifdef NEARFAR_CRASH_INSIDE
#include_next <immintrin.h>
#else
#define NEARFAR_CRASH_INSIDE /* the compiler's headers include each other */
#include_next <immintrin.h>
#undef NEARFAR_CRASH_INSIDE
#include "all_reports.h"
#endif
