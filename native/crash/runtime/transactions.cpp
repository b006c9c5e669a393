// Calls of libpmemobj by which a program says what it may overwrite: where a transaction begins and
// ends, ranges that it snapshots, and objects that it allocates in a transaction. They are recorded
// and passed on; a store to anything else within a transaction is one that was not logged. Flushes
// that the program asks for are recorded as its own. Where a pool is created is recorded, too.
//
// libpmemobj's header need not be installed: what is needed of it is declared here.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/types.h>

#include "crash/runtime/recording.hpp"

using namespace nearfar::crash::runtime;

namespace {

/// PMEMoid.
struct Object {
  std::uint64_t pool;
  std::uint64_t offset;
};

bool is_ours(void* function) {
  Dl_info found, own;
  return dladdr(function, &found) != 0 && dladdr(reinterpret_cast<void*>(&is_ours), &own) != 0 &&
         found.dli_fbase == own.dli_fbase;
}

/// A function in a library that is loaded, or in one that it was linked with; null where there is
/// none. It stays loaded then.
void* function_of(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* found = dlsym(handle, name);
  if (found != nullptr && !is_ours(found)) return found;
  dlclose(handle);
  return nullptr;
}

/// The library's own function of that name; null where there is none. It comes after ours where
/// the library is the program's; where it came with something that was opened by dlopen with
/// RTLD_LOCAL, only that library has it: the caller at `code`.
void* find(const char* name, const void* code) {
  if (void* found = dlsym(RTLD_NEXT, name); found != nullptr) return found;
  Dl_info caller;
  void* found = dladdr(code, &caller) == 0 ? nullptr : function_of(caller.dli_fname, name);
  return found != nullptr ? found : function_of("libpmemobj.so.1", name);
}

/// The same; ends the program where there is none, as a call of a function that is not there would.
template <class Function>
Function* next(const char* name, const void* code) {
  void* found = find(name, code);
  if (found == nullptr) {
    std::fprintf(stderr,
                 "nearfar: %s was called, and the libpmemobj that has it is not to be found\n"
                 "  next: link the program with -lpmemobj\n",
                 name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

void record_range(const void* at, std::size_t bytes, const void* code) {
  if (started() && at != nullptr) report(EventKind::log, at, bytes, code);
}
void record_range(Object object, std::uint64_t into, std::size_t bytes, const void* code) {
  static auto* const direct = reinterpret_cast<void* (*)(Object)>(find("pmemobj_direct", code));
  if (!started() || object.offset == 0 || direct == nullptr) return;
  record_range(static_cast<const char*>(direct(object)) + into, bytes, code);
}

} // namespace

#define NEARFAR_CALLER __builtin_return_address(0)
#define NEARFAR_EXPORT extern "C" [[gnu::visibility("default")]]

/// A pool that is created in part does not open: that is libpmemobj's, and no finding.
NEARFAR_EXPORT void* pmemobj_create(const char* path, const char* layout, std::size_t bytes,
                                    mode_t mode) {
  static auto* const real =
      next<void*(const char*, const char*, std::size_t, mode_t)>("pmemobj_create", NEARFAR_CALLER);
  void* const pool = real(path, layout, bytes, mode);
  if (pool != nullptr && started()) created(path);
  return pool;
}

#define NEARFAR_FLUSH(name)                                                                        \
  NEARFAR_EXPORT void name(void* pool, const void* at, std::size_t bytes) {                        \
    static auto* const real = next<void(void*, const void*, std::size_t)>(#name, NEARFAR_CALLER);  \
    if (started()) report(EventKind::flush, at, bytes, NEARFAR_CALLER);                            \
    real(pool, at, bytes);                                                                         \
  }
NEARFAR_FLUSH(pmemobj_persist)
NEARFAR_FLUSH(pmemobj_flush)
#undef NEARFAR_FLUSH
#define NEARFAR_FLUSH_WITH_FLAGS(name)                                                             \
  NEARFAR_EXPORT int name(void* pool, const void* at, std::size_t bytes, unsigned flags) {         \
    static auto* const real =                                                                      \
        next<int(void*, const void*, std::size_t, unsigned)>(#name, NEARFAR_CALLER);               \
    if (started()) report(EventKind::flush, at, bytes, NEARFAR_CALLER);                            \
    return real(pool, at, bytes, flags);                                                           \
  }
NEARFAR_FLUSH_WITH_FLAGS(pmemobj_xpersist)
NEARFAR_FLUSH_WITH_FLAGS(pmemobj_xflush)
#undef NEARFAR_FLUSH_WITH_FLAGS

NEARFAR_EXPORT int pmemobj_tx_add_range(Object object, std::uint64_t into, std::size_t bytes) {
  static auto* const real =
      next<int(Object, std::uint64_t, std::size_t)>("pmemobj_tx_add_range", NEARFAR_CALLER);
  record_range(object, into, bytes, NEARFAR_CALLER);
  return real(object, into, bytes);
}
NEARFAR_EXPORT int pmemobj_tx_xadd_range(Object object, std::uint64_t into, std::size_t bytes,
                                         std::uint64_t flags) {
  static auto* const real = next<int(Object, std::uint64_t, std::size_t, std::uint64_t)>(
      "pmemobj_tx_xadd_range", NEARFAR_CALLER);
  record_range(object, into, bytes, NEARFAR_CALLER);
  return real(object, into, bytes, flags);
}
NEARFAR_EXPORT int pmemobj_tx_add_range_direct(const void* at, std::size_t bytes) {
  static auto* const real =
      next<int(const void*, std::size_t)>("pmemobj_tx_add_range_direct", NEARFAR_CALLER);
  record_range(at, bytes, NEARFAR_CALLER);
  return real(at, bytes);
}
NEARFAR_EXPORT int pmemobj_tx_xadd_range_direct(const void* at, std::size_t bytes,
                                                std::uint64_t flags) {
  static auto* const real = next<int(const void*, std::size_t, std::uint64_t)>(
      "pmemobj_tx_xadd_range_direct", NEARFAR_CALLER);
  record_range(at, bytes, NEARFAR_CALLER);
  return real(at, bytes, flags);
}

namespace {

thread_local int transactions = 0; ///< that this thread is in, nested ones counted

} // namespace

/// Records the beginning of a transaction, and returns the library's function.
extern "C" [[gnu::used]] void* nearfar_transaction_begins(const void* code) {
  static void* const real = reinterpret_cast<void*>(next<int()>("pmemobj_tx_begin", code));
  if (transactions++ == 0 && started()) report(EventKind::tx_begin, nullptr, 0, code);
  return real;
}

// Any number of arguments: they stay where they are, and the library's function is jumped to.
asm(R"(
  .text
  .globl pmemobj_tx_begin
  .type pmemobj_tx_begin, @function
pmemobj_tx_begin:
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  push %rax
  mov 56(%rsp), %rdi
  call nearfar_transaction_begins
  mov %rax, %r11
  pop %rax
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
  jmp *%r11
  .size pmemobj_tx_begin, . - pmemobj_tx_begin
)");

NEARFAR_EXPORT int pmemobj_tx_end() {
  static auto* const real = next<int()>("pmemobj_tx_end", NEARFAR_CALLER);
  const int failed = real();
  if (transactions > 0 && --transactions == 0 && started())
    report(EventKind::tx_end, nullptr, static_cast<std::size_t>(failed), NEARFAR_CALLER);
  return failed;
}

#define NEARFAR_ALLOCATION(name)                                                                   \
  NEARFAR_EXPORT Object name(std::size_t bytes, std::uint64_t type) {                              \
    static auto* const real = next<Object(std::size_t, std::uint64_t)>(#name, NEARFAR_CALLER);     \
    const Object made = real(bytes, type);                                                         \
    record_range(made, 0, bytes, NEARFAR_CALLER);                                                  \
    return made;                                                                                   \
  }
NEARFAR_ALLOCATION(pmemobj_tx_alloc)
NEARFAR_ALLOCATION(pmemobj_tx_zalloc)
#undef NEARFAR_ALLOCATION

NEARFAR_EXPORT Object pmemobj_tx_xalloc(std::size_t bytes, std::uint64_t type,
                                        std::uint64_t flags) {
  static auto* const real =
      next<Object(std::size_t, std::uint64_t, std::uint64_t)>("pmemobj_tx_xalloc", NEARFAR_CALLER);
  const Object made = real(bytes, type, flags);
  record_range(made, 0, bytes, NEARFAR_CALLER);
  return made;
}

#define NEARFAR_REALLOCATION(name)                                                                 \
  NEARFAR_EXPORT Object name(Object object, std::size_t bytes, std::uint64_t type) {               \
    static auto* const real =                                                                      \
        next<Object(Object, std::size_t, std::uint64_t)>(#name, NEARFAR_CALLER);                   \
    const Object made = real(object, bytes, type);                                                 \
    record_range(made, 0, bytes, NEARFAR_CALLER);                                                  \
    return made;                                                                                   \
  }
NEARFAR_REALLOCATION(pmemobj_tx_realloc)
NEARFAR_REALLOCATION(pmemobj_tx_zrealloc)
#undef NEARFAR_REALLOCATION

namespace {

/// An object that is about to be freed.
struct Freed {
  const char* at = nullptr;
  std::size_t bytes = 0;

  Freed(Object object, const void* code) {
    if (!started() || object.offset == 0) return;
    static auto* const direct = next<void*(Object)>("pmemobj_direct", code);
    static auto* const size = next<std::size_t(Object)>("pmemobj_alloc_usable_size", code);
    at = static_cast<const char*>(direct(object));
    bytes = size(object);
  }
  void report(const void* code) const {
    if (at != nullptr) report_release(at, bytes, code);
  }
};

} // namespace

NEARFAR_EXPORT void pmemobj_free(Object* object) {
  static auto* const real = next<void(Object*)>("pmemobj_free", NEARFAR_CALLER);
  const Freed freed(*object, NEARFAR_CALLER);
  real(object);
  freed.report(NEARFAR_CALLER);
}
NEARFAR_EXPORT int pmemobj_tx_free(Object object) {
  static auto* const real = next<int(Object)>("pmemobj_tx_free", NEARFAR_CALLER);
  const Freed freed(object, NEARFAR_CALLER);
  const int failed = real(object);
  if (failed == 0) freed.report(NEARFAR_CALLER);
  return failed;
}
NEARFAR_EXPORT int pmemobj_tx_xfree(Object object, std::uint64_t flags) {
  static auto* const real = next<int(Object, std::uint64_t)>("pmemobj_tx_xfree", NEARFAR_CALLER);
  const Freed freed(object, NEARFAR_CALLER);
  const int failed = real(object, flags);
  if (failed == 0) freed.report(NEARFAR_CALLER);
  return failed;
}
NEARFAR_EXPORT int pmemobj_list_remove(void* pool, std::size_t entry, void* head, Object object,
                                       int frees) {
  static auto* const real =
      next<int(void*, std::size_t, void*, Object, int)>("pmemobj_list_remove", NEARFAR_CALLER);
  const Freed freed(frees != 0 ? object : Object{}, NEARFAR_CALLER);
  const int failed = real(pool, entry, head, object, frees);
  if (failed == 0) freed.report(NEARFAR_CALLER);
  return failed;
}
