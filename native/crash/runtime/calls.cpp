// Calls that the recorder replaces: of mappings, and libpmem's flushes and copies. Found before the
// libraries' own, for it is preloaded. Those of files are in files.cpp, those of strings in strings.cpp.
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash/runtime/copies.hpp"
#include "crash/runtime/instructions.hpp"
#include "crash/runtime/kernel.hpp"
#include "crash/runtime/page_rights.hpp"
#include "crash/runtime/recording.hpp"
#include "crash/runtime/replaced.hpp"
#include "crash/runtime/turns.hpp"

using namespace nearfar::crash::runtime;

namespace {

// libpmem's flags (libpmem.h), whose header need not be installed.
constexpr unsigned no_drain = 1u << 0;
constexpr unsigned no_flush = 1u << 5;

EventKind kind_of(unsigned flags) {
  return (flags & no_flush) != 0 ? EventKind::store : EventKind::nt_store;
}
void drain_unless(unsigned flags, const void* code) {
  if ((flags & (no_drain | no_flush)) == 0) report(EventKind::fence, nullptr, 0, code);
}
void persist(const void* at, std::size_t bytes, const void* code) {
  report(EventKind::flush, at, bytes, code);
  report(EventKind::fence, nullptr, 0, code);
}

} // namespace

extern "C" {

NEARFAR_EXPORT void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd,
                          off_t offset) noexcept {
  void* got =
      reinterpret_cast<void*>(system_call(SYS_mmap, at, bytes, protection, flags, fd, offset));
  expect_code(protection);
  if (got != MAP_FAILED && started()) {
    if ((flags & MAP_FIXED) != 0) unmapped(got, bytes);
    mapped(got, bytes, protection, flags, fd, offset);
    if (regions.count > 0 && fd >= 0) search_modules(true);
  }
  return got;
}
NEARFAR_EXPORT void* mmap64(void* at, std::size_t bytes, int protection, int flags, int fd,
                            off_t offset) noexcept {
  return mmap(at, bytes, protection, flags, fd, offset);
}
NEARFAR_EXPORT int munmap(void* at, std::size_t bytes) noexcept {
  if (started()) unmapped(at, bytes);
  return static_cast<int>(system_call(SYS_munmap, at, bytes));
}
NEARFAR_EXPORT void* mremap(void* old, std::size_t old_bytes, std::size_t bytes, int flags,
                            ...) noexcept {
  void* target = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list more;
    va_start(more, flags);
    target = va_arg(more, void*);
    va_end(more);
    if (started()) unmapped(target, bytes);
  }
  const std::optional<RecordedRegion> region = pause_watch(old); // also after a failed recording
  void* got =
      reinterpret_cast<void*>(system_call(SYS_mremap, old, old_bytes, bytes, flags, target));
  if (region && got != MAP_FAILED)
    moved(*region, got, bytes);
  else if (region)
    resume_watch(*region);
  return got;
}
NEARFAR_EXPORT int mprotect(void* at, std::size_t bytes, int protection) noexcept {
  const auto done = static_cast<int>(system_call(SYS_mprotect, at, bytes, protection));
  expect_code(protection);
  if (done == 0) keep_watch(at, bytes, protection);
  return done;
}
NEARFAR_EXPORT int pkey_mprotect(void* at, std::size_t bytes, int protection, int key) noexcept {
  const auto done = static_cast<int>(system_call(SYS_pkey_mprotect, at, bytes, protection, key));
  expect_code(protection);
  if (done == 0) keep_watch(at, bytes, protection);
  return done;
}
NEARFAR_EXPORT int ftruncate(int fd, off_t bytes) noexcept {
  const auto done = static_cast<int>(system_call(SYS_ftruncate, fd, bytes));
  resized(fd);
  return done;
}
NEARFAR_EXPORT int ftruncate64(int fd, off64_t bytes) noexcept { return ftruncate(fd, bytes); }
NEARFAR_EXPORT int truncate(const char* path, off_t bytes) noexcept {
  const auto done = static_cast<int>(system_call(SYS_truncate, path, bytes));
  resized(path);
  return done;
}
NEARFAR_EXPORT int truncate64(const char* path, off64_t bytes) noexcept {
  return truncate(path, bytes);
}
NEARFAR_EXPORT int msync(void* at, std::size_t bytes, int flags) {
  if ((flags & MS_SYNC) != 0) persist(at, bytes, NEARFAR_CALLER);
  return static_cast<int>(system_call(SYS_msync, at, bytes, flags));
}

// libpmem. A flush is recorded, and not made: it is not relied upon that a recorded pool is durable.
NEARFAR_EXPORT void pmem_flush(const void* at, std::size_t bytes) {
  report(EventKind::flush, at, bytes, NEARFAR_CALLER);
}
NEARFAR_EXPORT void pmem_deep_flush(const void* at, std::size_t bytes) {
  report(EventKind::flush, at, bytes, NEARFAR_CALLER);
}
NEARFAR_EXPORT void pmem_drain() { report(EventKind::fence, nullptr, 0, NEARFAR_CALLER); }
NEARFAR_EXPORT int pmem_deep_drain(const void*, std::size_t) {
  report(EventKind::fence, nullptr, 0, NEARFAR_CALLER);
  return 0;
}
NEARFAR_EXPORT void pmem_persist(const void* at, std::size_t bytes) {
  persist(at, bytes, NEARFAR_CALLER);
}
NEARFAR_EXPORT int pmem_deep_persist(const void* at, std::size_t bytes) {
  persist(at, bytes, NEARFAR_CALLER);
  return 0;
}
NEARFAR_EXPORT int pmem_msync(const void* at, std::size_t bytes) {
  persist(at, bytes, NEARFAR_CALLER);
  return 0;
}

#define NEARFAR_ASKER copying_for(NEARFAR_CALLER)
#define NEARFAR_PMEM_COPY(name)                                                                    \
  NEARFAR_EXPORT void* name(void* to, const void* from, std::size_t bytes, unsigned flags) {       \
    recorded_copy(to, from, bytes, kind_of(flags), NEARFAR_ASKER);                                 \
    drain_unless(flags, NEARFAR_ASKER);                                                            \
    return to;                                                                                     \
  }                                                                                                \
  NEARFAR_EXPORT void* name##_persist(void* to, const void* from, std::size_t bytes) {             \
    recorded_copy(to, from, bytes, EventKind::nt_store, NEARFAR_ASKER);                            \
    report(EventKind::fence, nullptr, 0, NEARFAR_ASKER);                                           \
    return to;                                                                                     \
  }                                                                                                \
  NEARFAR_EXPORT void* name##_nodrain(void* to, const void* from, std::size_t bytes) {             \
    recorded_copy(to, from, bytes, EventKind::nt_store, NEARFAR_ASKER);                            \
    return to;                                                                                     \
  }
NEARFAR_PMEM_COPY(pmem_memcpy)
NEARFAR_PMEM_COPY(pmem_memmove)
#undef NEARFAR_PMEM_COPY
NEARFAR_EXPORT void* pmem_memset(void* to, int value, std::size_t bytes, unsigned flags) {
  recorded_fill(to, value, bytes, kind_of(flags), NEARFAR_ASKER);
  drain_unless(flags, NEARFAR_ASKER);
  return to;
}
NEARFAR_EXPORT void* pmem_memset_persist(void* to, int value, std::size_t bytes) {
  recorded_fill(to, value, bytes, EventKind::nt_store, NEARFAR_ASKER);
  report(EventKind::fence, nullptr, 0, NEARFAR_ASKER);
  return to;
}
NEARFAR_EXPORT void* pmem_memset_nodrain(void* to, int value, std::size_t bytes) {
  recorded_fill(to, value, bytes, EventKind::nt_store, NEARFAR_ASKER);
  return to;
}

// include/nearfar/crash_intrinsics.h.
NEARFAR_EXPORT void nearfar_crash_flush(const void* at, std::size_t bytes) {
  report(EventKind::flush, at, bytes, NEARFAR_CALLER);
}
NEARFAR_EXPORT void nearfar_crash_ordered_flush(const void* at) {
  report_clflush(at, NEARFAR_CALLER);
}
NEARFAR_EXPORT void nearfar_crash_fence() { report(EventKind::fence, nullptr, 0, NEARFAR_CALLER); }
NEARFAR_EXPORT void nearfar_crash_nt_store(const void* at, std::size_t bytes) {
  report_store(EventKind::nt_store, at, bytes, NEARFAR_CALLER);
}
NEARFAR_EXPORT void nearfar_crash_begin(unsigned long operation) {
  turn_at_begin();
  report(EventKind::begin, nullptr, operation, NEARFAR_CALLER);
}
NEARFAR_EXPORT void nearfar_crash_end(unsigned long operation) {
  report(EventKind::end, nullptr, operation, NEARFAR_CALLER);
  turn_at_end();
}
NEARFAR_EXPORT void nearfar_crash_host(int host) { continue_on_host(host); }
}
