/* The header of the compiler, and reports of its flushes, fences and non-temporal stores. */
#include_next <immintrin.h>
#include "imm_reports.h"
