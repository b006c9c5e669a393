/* The header of the compiler, and reports of its flushes, fences and non-temporal stores. */
#include_next <emmintrin.h>
#include "emm_reports.h"
