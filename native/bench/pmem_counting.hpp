// Fences and lines of libpmemobj, counted into the same counters as nearfar's own (storelog).
//
// How       libpmemobj makes everything durable through a few functions of libpmem: pmem_flush,
//           pmem_drain, pmem_persist, pmem_memcpy, pmem_memmove, pmem_memset and pmem_msync. They
//           are dynamic symbols, and pmem_counting.cpp defines them again: the dynamic linker finds
//           those first, they count and pass on. Nothing of libpmemobj or libpmem is changed.
// Counted   a drain or an msync is a fence; lines are those a flush, an msync or a copy past or
//           through the caches touches, a line as often as it is touched. Counted even where the
//           processor needs no flush (eADR), for that is what the program asked for.
// Cost      one more call and two increments of thread-local words: 1 to 2 ns each.
#pragma once

#include "base/result.hpp"

namespace nearfar::bench {

/// Whether the counting stands between libpmemobj and libpmem in this process, found out by a flush
/// of libpmemobj: false in a program whose linking hides it, and then nothing may be counted.
/// `pool` is an open pool, `at` a word in it.
bool counts_pmem(void* pool, const void* at);

/// What to say where it does not.
Error uncounted();

} // namespace nearfar::bench
