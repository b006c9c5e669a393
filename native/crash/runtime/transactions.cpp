// Calls of libpmemobj by which a program says what it may overwrite: ranges that it snapshots, and
// objects that it allocates in a transaction. They are told, then passed on; a store to anything
// else within an operation is one that was not logged.
//
// libpmemobj's header need not be installed: what is needed of it is declared here.
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>

#include "crash/runtime/recording.hpp"

using namespace nearfar::crash::runtime;

namespace {

/// PMEMoid.
struct Object {
  std::uint64_t pool;
  std::uint64_t offset;
};

/// The library's own function of that name, which comes after ours; null where there is none.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void tell(const void* at, std::size_t bytes, const void* code) {
  if (started() && at != nullptr) report(Kind::log, at, bytes, code);
}
void tell(Object object, std::uint64_t into, std::size_t bytes, const void* code) {
  static auto* const direct = next<void*(Object)>("pmemobj_direct");
  if (!started() || object.offset == 0 || direct == nullptr) return;
  tell(static_cast<const char*>(direct(object)) + into, bytes, code);
}

} // namespace

#define NEARFAR_CALLER __builtin_return_address(0)
#define NEARFAR_EXPORT extern "C" [[gnu::visibility("default")]]

NEARFAR_EXPORT int pmemobj_tx_add_range(Object object, std::uint64_t into, std::size_t bytes) {
  static auto* const real = next<int(Object, std::uint64_t, std::size_t)>("pmemobj_tx_add_range");
  tell(object, into, bytes, NEARFAR_CALLER);
  return real(object, into, bytes);
}
NEARFAR_EXPORT int pmemobj_tx_xadd_range(Object object, std::uint64_t into, std::size_t bytes,
                                         std::uint64_t flags) {
  static auto* const real =
      next<int(Object, std::uint64_t, std::size_t, std::uint64_t)>("pmemobj_tx_xadd_range");
  tell(object, into, bytes, NEARFAR_CALLER);
  return real(object, into, bytes, flags);
}
NEARFAR_EXPORT int pmemobj_tx_add_range_direct(const void* at, std::size_t bytes) {
  static auto* const real = next<int(const void*, std::size_t)>("pmemobj_tx_add_range_direct");
  tell(at, bytes, NEARFAR_CALLER);
  return real(at, bytes);
}
NEARFAR_EXPORT int pmemobj_tx_xadd_range_direct(const void* at, std::size_t bytes,
                                                std::uint64_t flags) {
  static auto* const real =
      next<int(const void*, std::size_t, std::uint64_t)>("pmemobj_tx_xadd_range_direct");
  tell(at, bytes, NEARFAR_CALLER);
  return real(at, bytes, flags);
}

#define NEARFAR_ALLOCATION(name)                                                                   \
  NEARFAR_EXPORT Object name(std::size_t bytes, std::uint64_t type) {                              \
    static auto* const real = next<Object(std::size_t, std::uint64_t)>(#name);                     \
    const Object made = real(bytes, type);                                                         \
    tell(made, 0, bytes, NEARFAR_CALLER);                                                          \
    return made;                                                                                   \
  }
NEARFAR_ALLOCATION(pmemobj_tx_alloc)
NEARFAR_ALLOCATION(pmemobj_tx_zalloc)
#undef NEARFAR_ALLOCATION

NEARFAR_EXPORT Object pmemobj_tx_xalloc(std::size_t bytes, std::uint64_t type,
                                        std::uint64_t flags) {
  static auto* const real =
      next<Object(std::size_t, std::uint64_t, std::uint64_t)>("pmemobj_tx_xalloc");
  const Object made = real(bytes, type, flags);
  tell(made, 0, bytes, NEARFAR_CALLER);
  return made;
}

#define NEARFAR_REALLOCATION(name)                                                                 \
  NEARFAR_EXPORT Object name(Object object, std::size_t bytes, std::uint64_t type) {               \
    static auto* const real = next<Object(Object, std::size_t, std::uint64_t)>(#name);             \
    const Object made = real(object, bytes, type);                                                 \
    tell(made, 0, bytes, NEARFAR_CALLER);                                                          \
    return made;                                                                                   \
  }
NEARFAR_REALLOCATION(pmemobj_tx_realloc)
NEARFAR_REALLOCATION(pmemobj_tx_zrealloc)
#undef NEARFAR_REALLOCATION
