/* Reports of the intrinsics of the headers that are included, by the guards of GCC and of clang. Others a
 * program may define itself. */
#if defined(_XMMINTRIN_H_INCLUDED) || defined(__XMMINTRIN_H)
#include "xmm_reports.h"
#endif
#if defined(_EMMINTRIN_H_INCLUDED) || defined(__EMMINTRIN_H)
#include "emm_reports.h"
#endif
#if defined(_IMMINTRIN_H_INCLUDED) || defined(__IMMINTRIN_H)
#include "imm_reports.h"
#endif
