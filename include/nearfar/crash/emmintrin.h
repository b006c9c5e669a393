/* The header of the compiler, and reports of its flushes, fences and non-temporal stores. */
#include "../crash_intrinsics.h"
#include_next <emmintrin.h>
