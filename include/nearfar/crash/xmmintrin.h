/* The header of the compiler, and reports of its flushes, fences and non-temporal stores. */
#include_next <xmmintrin.h>
#include "xmm_reports.h"
