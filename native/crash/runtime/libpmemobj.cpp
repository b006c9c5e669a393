#include "crash/runtime/libpmemobj.hpp"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

namespace {

bool is_ours(void* function) {
  Dl_info found, own;
  return dladdr(function, &found) != 0 && dladdr(reinterpret_cast<void*>(&is_ours), &own) != 0 &&
         found.dli_fbase == own.dli_fbase;
}

constexpr const char* library_name = "libpmemobj.so.1";

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

} // namespace

/// It comes after ours where the library is the program's; where it came with something that was
/// opened by dlopen with RTLD_LOCAL, only that library has it: the caller at `code`.
void* find_in_libpmemobj(const char* name, const void* code) {
  if (void* found = dlsym(RTLD_NEXT, name); found != nullptr) return found;
  Dl_info caller;
  void* found = dladdr(code, &caller) == 0 ? nullptr : function_of(caller.dli_fname, name);
  return found != nullptr ? found : function_of(library_name, name);
}

void* require_in_libpmemobj(const char* name, const void* code) {
  void* found = find_in_libpmemobj(name, code);
  if (found == nullptr) {
    std::fprintf(stderr,
                 "nearfar: %s was called, and the libpmemobj that has it is not to be found\n"
                 "  next: link the program with -lpmemobj\n",
                 name);
    std::abort();
  }
  return found;
}

char* address_of(Object object, const void* code) {
  static auto* const direct =
      reinterpret_cast<void* (*)(Object)>(find_in_libpmemobj("pmemobj_direct", code));
  if (object.offset == 0 || direct == nullptr) return nullptr;
  return static_cast<char*>(direct(object));
}

char* report_allocated(Object object, std::size_t bytes, const void* code) {
  char* const at = started() ? address_of(object, code) : nullptr;
  if (at != nullptr) report_use(Use::allocated, at, bytes, code);
  return at;
}

Freed::Freed(Object object, const void* code) : code_(code) {
  if (!started() || object.offset == 0) return;
  static auto* const size = next<std::size_t(Object)>("pmemobj_alloc_usable_size", code);
  at_ = address_of(object, code);
  bytes_ = size(object);
}

void Freed::report() const {
  if (at_ != nullptr) report_use(Use::freed, at_, bytes_, code_);
}

} // namespace nearfar::crash::runtime
