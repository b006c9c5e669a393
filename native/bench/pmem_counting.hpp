// Fences and lines of libpmemobj, counted into the same counters as nearfar's own (storelog).
//
// Method    libpmemobj makes everything durable through a few functions of libpmem: pmem_flush,
//           pmem_drain, pmem_persist, pmem_memcpy, pmem_memmove, pmem_memset and pmem_msync. They
//           are dynamic symbols, and pmem_counting.cpp defines them again: the dynamic linker finds
//           those first, which count and call the originals. libpmemobj and libpmem are not
//           changed.
// Counted   a drain or an msync is a fence; lines are those that a flush, an msync or a copy
//           touches, each time. They are counted even if the CPU requires no flush (eADR), because
//           the program requested it.
// Cost      one more call and two increments of thread-local words: 1 to 2 ns each.
#pragma once

#include "base/result.hpp"

namespace nearfar::bench {

/// Whether calls of libpmemobj to libpmem are counted in this process, tested by a flush of
/// libpmemobj: false in a program whose linking hides the counting functions. `pool` is an open
/// pool, `at` a word in it.
bool counts_pmem(void* pool, const void* at);

/// The error if they are not.
Error uncounted();

} // namespace nearfar::bench
