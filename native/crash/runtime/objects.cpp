// Calls of libpmemobj outside of transactions: a pool is created, objects are allocated and freed, and
// bytes are flushed and copied. They are recorded as the program's own, and passed on.
#include <cstddef>
#include <cstdint>
#include <sys/types.h>

#include "crash/runtime/copies.hpp"
#include "crash/runtime/libpmemobj.hpp"
#include "crash/runtime/locks.hpp"
#include "crash/runtime/recording.hpp"

using namespace nearfar::crash::runtime;

/// A pool that is created in part does not open: that is libpmemobj's, and no finding.
NEARFAR_EXPORT void* pmemobj_create(const char* path, const char* layout, std::size_t bytes,
                                    mode_t mode) {
  static auto* const real = NEARFAR_NEXT(pmemobj_create);
  void* const pool = real(path, layout, bytes, mode);
  if (pool != nullptr && started()) created(path);
  return pool;
}

#define NEARFAR_FLUSH(name)                                                                        \
  NEARFAR_EXPORT void name(void* pool, const void* at, std::size_t bytes) {                        \
    static auto* const real = NEARFAR_NEXT(name);                                                  \
    if (started()) report(EventKind::flush, at, bytes, NEARFAR_CALLER);                            \
    real(pool, at, bytes);                                                                         \
  }
NEARFAR_FLUSH(pmemobj_persist)
NEARFAR_FLUSH(pmemobj_flush)
#undef NEARFAR_FLUSH
#define NEARFAR_FLUSH_WITH_FLAGS(name)                                                             \
  NEARFAR_EXPORT int name(void* pool, const void* at, std::size_t bytes, unsigned flags) {         \
    static auto* const real = NEARFAR_NEXT(name);                                                  \
    if (started()) report(EventKind::flush, at, bytes, NEARFAR_CALLER);                            \
    return real(pool, at, bytes, flags);                                                           \
  }
NEARFAR_FLUSH_WITH_FLAGS(pmemobj_xpersist)
NEARFAR_FLUSH_WITH_FLAGS(pmemobj_xflush)
#undef NEARFAR_FLUSH_WITH_FLAGS

// libpmemobj copies by libpmem, whose functions the recorder replaces.
#define NEARFAR_COPY(name)                                                                         \
  NEARFAR_EXPORT void* name(void* pool, void* to, const void* from, std::size_t bytes,             \
                            unsigned flags) {                                                      \
    static auto* const real = NEARFAR_NEXT(name);                                                  \
    const CopyingFor program(NEARFAR_CALLER);                                                      \
    return real(pool, to, from, bytes, flags);                                                     \
  }
NEARFAR_COPY(pmemobj_memcpy)
NEARFAR_COPY(pmemobj_memmove)
#undef NEARFAR_COPY
NEARFAR_EXPORT void* pmemobj_memset(void* pool, void* to, int value, std::size_t bytes,
                                    unsigned flags) {
  static auto* const real = NEARFAR_NEXT(pmemobj_memset);
  const CopyingFor program(NEARFAR_CALLER);
  return real(pool, to, value, bytes, flags);
}
NEARFAR_EXPORT void* pmemobj_memcpy_persist(void* pool, void* to, const void* from,
                                            std::size_t bytes) {
  static auto* const real = NEARFAR_NEXT(pmemobj_memcpy_persist);
  const CopyingFor program(NEARFAR_CALLER);
  return real(pool, to, from, bytes);
}
NEARFAR_EXPORT void* pmemobj_memset_persist(void* pool, void* to, int value, std::size_t bytes) {
  static auto* const real = NEARFAR_NEXT(pmemobj_memset_persist);
  const CopyingFor program(NEARFAR_CALLER);
  return real(pool, to, value, bytes);
}

namespace {

/// The allocation of an object; libpmemobj calls run() before the object is there.
struct Construction {
  using Constructor = int(void* pool, void* at, void* argument);

  Constructor* constructor;
  void* argument;
  std::size_t bytes;
  const void* code;
  void* at = nullptr;

  static int run(void* pool, void* at, void* argument) {
    auto& self = *static_cast<Construction*>(argument);
    self.at = at;
    report_use(Use::allocated, at, self.bytes, self.code);
    return self.constructor == nullptr ? 0 : self.constructor(pool, at, self.argument);
  }
  /// The object is there, and its address at `link`, or the constructor said that there is none to be,
  /// or there is no room for it.
  void end(bool is_made, const void* link) const {
    if (at == nullptr) return;
    if (is_made)
      report_published(link, at, bytes, code);
    else
      report_use(Use::freed, at, bytes, code);
  }
};

} // namespace

namespace {

Object reported_root(Object root, std::size_t bytes, const void* code) {
  if (started()) report_object(address_of(root, code), bytes, false);
  return root;
}

} // namespace

NEARFAR_EXPORT Object pmemobj_root(void* pool, std::size_t bytes) {
  static auto* const real = NEARFAR_NEXT(pmemobj_root);
  return reported_root(real(pool, bytes), bytes, NEARFAR_CALLER);
}
NEARFAR_EXPORT Object pmemobj_root_construct(void* pool, std::size_t bytes,
                                             Construction::Constructor* constructor,
                                             void* argument) {
  static auto* const real = NEARFAR_NEXT(pmemobj_root_construct);
  return reported_root(real(pool, bytes, constructor, argument), bytes, NEARFAR_CALLER);
}

NEARFAR_EXPORT int pmemobj_alloc(void* pool, Object* object, std::size_t bytes, std::uint64_t type,
                                 Construction::Constructor* constructor, void* argument) {
  static auto* const real = NEARFAR_NEXT(pmemobj_alloc);
  Construction made{constructor, argument, bytes, NEARFAR_CALLER};
  const int failed = real(pool, object, bytes, type, Construction::run, &made);
  made.end(failed == 0, object);
  return failed;
}
NEARFAR_EXPORT int pmemobj_xalloc(void* pool, Object* object, std::size_t bytes, std::uint64_t type,
                                  std::uint64_t flags, Construction::Constructor* constructor,
                                  void* argument) {
  static auto* const real = NEARFAR_NEXT(pmemobj_xalloc);
  Construction made{constructor, argument, bytes, NEARFAR_CALLER};
  const int failed = real(pool, object, bytes, type, flags, Construction::run, &made);
  made.end(failed == 0, object);
  return failed;
}
NEARFAR_EXPORT Object pmemobj_list_insert_new(void* pool, std::size_t entry, void* head,
                                              Object neighbor, int before, std::size_t bytes,
                                              std::uint64_t type,
                                              Construction::Constructor* constructor,
                                              void* argument) {
  static auto* const real = NEARFAR_NEXT(pmemobj_list_insert_new);
  Construction made{constructor, argument, bytes, NEARFAR_CALLER};
  const Object object =
      real(pool, entry, head, neighbor, before, bytes, type, Construction::run, &made);
  made.end(object.offset != 0, head);
  return object;
}
NEARFAR_EXPORT int pmemobj_zalloc(void* pool, Object* object, std::size_t bytes,
                                  std::uint64_t type) {
  static auto* const real = NEARFAR_NEXT(pmemobj_zalloc);
  const int failed = real(pool, object, bytes, type);
  if (failed == 0 && object != nullptr)
    report_published(object, report_allocated(*object, bytes, NEARFAR_CALLER), bytes,
                     NEARFAR_CALLER);
  return failed;
}

namespace {

/// What an object became by a call that may move it.
void report_resized(const Freed& before, Object* object, std::size_t bytes, const void* code) {
  if (!started()) return;
  char* const at = address_of(*object, code);
  if (before.is_at(at)) return report_object(at, bytes, true);
  before.report();
  report_published(object, report_allocated(*object, bytes, code), bytes, code);
}

} // namespace

#define NEARFAR_REALLOCATION(name)                                                                 \
  NEARFAR_EXPORT int name(void* pool, Object* object, std::size_t bytes, std::uint64_t type) {     \
    static auto* const real = NEARFAR_NEXT(name);                                                  \
    const Freed before(*object, NEARFAR_CALLER);                                                   \
    const int failed = real(pool, object, bytes, type);                                            \
    if (failed == 0) report_resized(before, object, bytes, NEARFAR_CALLER);                        \
    return failed;                                                                                 \
  }
NEARFAR_REALLOCATION(pmemobj_realloc)
NEARFAR_REALLOCATION(pmemobj_zrealloc)
#undef NEARFAR_REALLOCATION

/// What lies there is initialized anew whenever the pool is opened.
NEARFAR_EXPORT void* pmemobj_volatile(void* pool, void* once, void* at, std::size_t bytes,
                                      int (*constructor)(void*, void*), void* argument) {
  static auto* const real = NEARFAR_NEXT(pmemobj_volatile);
  report_lock(once, sizeof(std::uint64_t), NEARFAR_CALLER);
  report_lock(at, bytes, NEARFAR_CALLER);
  return real(pool, once, at, bytes, constructor, argument);
}

NEARFAR_EXPORT void pmemobj_free(Object* object) {
  static auto* const real = NEARFAR_NEXT(pmemobj_free);
  const Freed freed(*object, NEARFAR_CALLER);
  real(object);
  freed.report();
}
NEARFAR_EXPORT int pmemobj_tx_free(Object object) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_free);
  const Freed freed(object, NEARFAR_CALLER);
  const int failed = real(object);
  if (failed == 0) freed.report();
  return failed;
}
NEARFAR_EXPORT int pmemobj_tx_xfree(Object object, std::uint64_t flags) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_xfree);
  const Freed freed(object, NEARFAR_CALLER);
  const int failed = real(object, flags);
  if (failed == 0) freed.report();
  return failed;
}
NEARFAR_EXPORT int pmemobj_list_remove(void* pool, std::size_t entry, void* head, Object object,
                                       int frees) {
  static auto* const real = NEARFAR_NEXT(pmemobj_list_remove);
  const Freed freed(frees != 0 ? object : Object{}, NEARFAR_CALLER);
  const int failed = real(pool, entry, head, object, frees);
  if (failed == 0) freed.report();
  return failed;
}
