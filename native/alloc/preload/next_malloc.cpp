#include "alloc/preload/next_malloc.hpp"

#include <atomic>
#include <dlfcn.h>

namespace nearfar::alloc {

namespace {

using Free = void (*)(void*);
using UsableSize = std::size_t (*)(void*);

/// A function of the next library that defines it, looked up once.
template <class T>
T find_next(std::atomic<T>& found, const char* name) {
  T function = found.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = reinterpret_cast<T>(dlsym(RTLD_NEXT, name));
    found.store(function, std::memory_order_relaxed);
  }
  return function;
}

constinit std::atomic<Free> free_found{nullptr};
constinit std::atomic<UsableSize> usable_size_found{nullptr};

} // namespace

void next_free(void* ptr) {
  if (Free function = find_next(free_found, "free"); function != nullptr) function(ptr);
}

std::size_t next_usable_size(void* ptr) {
  UsableSize function = find_next(usable_size_found, "malloc_usable_size");
  return function == nullptr ? 0 : function(ptr);
}

} // namespace nearfar::alloc
