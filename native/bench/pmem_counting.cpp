#include "bench/pmem_counting.hpp"

#include <cstddef>
#include <cstdint>
#include <libpmem.h>
#include <libpmemobj.h>

#include "persist/libpmem.hpp"
#include "storelog/storelog.hpp"

// Without a recorder's site: libpmemobj's own lines are of no use to anybody who looks for them.
namespace {

using nearfar::persist::libpmem_function;
using nearfar::storelog::fence;
using nearfar::storelog::flush;

using Transfer = void*(void*, const void*, std::size_t, unsigned);
constexpr unsigned undrained = PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NOFLUSH;

/// Copies by libpmem without its fence, then fences here unless the caller wants none.
void* transfer(Transfer* copy, void* to, const void* from, std::size_t bytes, unsigned flags) {
  void* result = copy(to, from, bytes, flags | PMEM_F_MEM_NODRAIN);
  if ((flags & PMEM_F_MEM_NOFLUSH) == 0) flush(to, bytes);
  if ((flags & undrained) == 0) pmem_drain();
  return result;
}

} // namespace

NEARFAR_INTERPOSE void pmem_flush(const void* at, std::size_t bytes) {
  static auto* next = libpmem_function<void(const void*, std::size_t)>("pmem_flush");
  flush(at, bytes);
  next(at, bytes);
}

NEARFAR_INTERPOSE void pmem_drain() {
  static auto* next = libpmem_function<void()>("pmem_drain");
  fence();
  next();
}

NEARFAR_INTERPOSE void pmem_persist(const void* at, std::size_t bytes) {
  pmem_flush(at, bytes);
  pmem_drain();
}

NEARFAR_INTERPOSE int pmem_msync(const void* at, std::size_t bytes) {
  static auto* next = libpmem_function<int(const void*, std::size_t)>("pmem_msync");
  flush(at, bytes);
  fence();
  return next(at, bytes);
}

NEARFAR_INTERPOSE void* pmem_memcpy(void* to, const void* from, std::size_t bytes, unsigned flags) {
  static auto* next = libpmem_function<Transfer>("pmem_memcpy");
  return transfer(next, to, from, bytes, flags);
}

NEARFAR_INTERPOSE void* pmem_memmove(void* to, const void* from, std::size_t bytes,
                                     unsigned flags) {
  static auto* next = libpmem_function<Transfer>("pmem_memmove");
  return transfer(next, to, from, bytes, flags);
}

NEARFAR_INTERPOSE void* pmem_memset(void* at, int value, std::size_t bytes, unsigned flags) {
  static auto* next = libpmem_function<void*(void*, int, std::size_t, unsigned)>("pmem_memset");
  void* result = next(at, value, bytes, flags | PMEM_F_MEM_NODRAIN);
  if ((flags & PMEM_F_MEM_NOFLUSH) == 0) flush(at, bytes);
  if ((flags & undrained) == 0) pmem_drain();
  return result;
}

namespace nearfar::bench {

bool counts_pmem(void* pool, const void* at) {
  const storelog::Counters before = storelog::counters();
  pmemobj_persist(static_cast<PMEMobjpool*>(pool), at, sizeof(std::uint64_t));
  const storelog::Counters done = storelog::counters() - before;
  return done.fences == 1 && done.lines == 1;
}

Error uncounted() {
  return Error::make(Errc::failed_check, "flushes of libpmemobj cannot be counted here")
      .try_next("start nearfar without LD_PRELOAD");
}

} // namespace nearfar::bench
