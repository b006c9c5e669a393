#include "alloc/preload/next_mapping.hpp"

#include <atomic>
#include <cerrno>
#include <dlfcn.h>

#include "os/mapping_calls.hpp"

namespace nearfar::alloc {

namespace {

using Mmap = void* (*)(void*, std::size_t, int, int, int, off_t);
using Mremap = void* (*)(void*, std::size_t, std::size_t, int, void*);
using Munmap = int (*)(void*, std::size_t);
using Brk = int (*)(void*);
using Sbrk = void* (*)(std::intptr_t);

// mremap() has a variable number of parameters, which are passed like others on x86-64.
constinit std::atomic<Mmap> mmap_found{os::call_mmap};
constinit std::atomic<Mremap> mremap_found{os::call_mremap};
constinit std::atomic<Munmap> munmap_found{os::call_munmap};
constinit std::atomic<Brk> brk_found{nullptr};
constinit std::atomic<Sbrk> sbrk_found{nullptr};

template <class T>
T look_up(std::atomic<T>& found, const char* name) {
  if (const auto function = reinterpret_cast<T>(dlsym(RTLD_NEXT, name)); function != nullptr)
    found.store(function, std::memory_order_relaxed);
  return found.load(std::memory_order_relaxed);
}

[[gnu::constructor(101)]] void find_next_functions() {
  look_up(mmap_found, "mmap");
  look_up(mremap_found, "mremap");
  look_up(munmap_found, "munmap");
  look_up(brk_found, "brk");
  look_up(sbrk_found, "sbrk");
}

template <class T>
T found_or_look_up(std::atomic<T>& found, const char* name) {
  const T function = found.load(std::memory_order_relaxed);
  return function != nullptr ? function : look_up(found, name);
}

} // namespace

void* next_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  return mmap_found.load(std::memory_order_relaxed)(at, bytes, protection, flags, fd, offset);
}

void* next_mremap(void* old, std::size_t old_bytes, std::size_t bytes, int flags, void* target) {
  return mremap_found.load(std::memory_order_relaxed)(old, old_bytes, bytes, flags, target);
}

int next_munmap(void* at, std::size_t bytes) {
  return munmap_found.load(std::memory_order_relaxed)(at, bytes);
}

int next_brk(void* end) {
  if (const Brk function = found_or_look_up(brk_found, "brk"); function != nullptr)
    return function(end);
  errno = ENOMEM;
  return -1;
}

void* next_sbrk(std::intptr_t change) {
  if (const Sbrk function = found_or_look_up(sbrk_found, "sbrk"); function != nullptr)
    return function(change);
  errno = ENOMEM;
  return reinterpret_cast<void*>(-1);
}

} // namespace nearfar::alloc
