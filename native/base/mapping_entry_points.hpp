// The entry points of mmap() and its relatives, each written once in terms of a type with static
// functions. A library that replaces them includes this file in one source file, after it has
// defined
//
//   #define NEARFAR_MAPPING Implementation
//   struct Implementation {
//     static void* map(void* at, std::size_t bytes, int protection, int flags, int file,
//                      off_t offset, nearfar::CallSite site);
//     // `target` is nullptr if the call has none.
//     static void* resize(void* old, std::size_t old_bytes, std::size_t bytes, int flags,
//                         void* target, nearfar::CallSite site);
//     static int unmap(void* at, std::size_t bytes, nearfar::CallSite site);
//   };
//
// Errors         those of mmap(2), with errno.
// Inlining       functions with a CallSite should be always inlined. Compile the file with
//                -fno-omit-frame-pointer, so that callers' frames can be found.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <sys/mman.h>
#include <sys/types.h>

#include "base/call_site.hpp"

#define NEARFAR_MAPPING_ENTRY_POINT __attribute__((visibility("default"), used))

extern "C" {

NEARFAR_MAPPING_ENTRY_POINT void* mmap(void* at, std::size_t bytes, int protection, int flags,
                                       int file, off_t offset) noexcept {
  return NEARFAR_MAPPING::map(at, bytes, protection, flags, file, offset, NEARFAR_CALL_SITE);
}

NEARFAR_MAPPING_ENTRY_POINT void* mmap64(void* at, std::size_t bytes, int protection, int flags,
                                         int file, off_t offset) noexcept {
  return NEARFAR_MAPPING::map(at, bytes, protection, flags, file, offset, NEARFAR_CALL_SITE);
}

NEARFAR_MAPPING_ENTRY_POINT void* mremap(void* old, std::size_t old_bytes, std::size_t bytes,
                                         int flags, ...) noexcept {
  void* target = nullptr;
  if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    target = va_arg(arguments, void*);
    va_end(arguments);
  }
  return NEARFAR_MAPPING::resize(old, old_bytes, bytes, flags, target, NEARFAR_CALL_SITE);
}

NEARFAR_MAPPING_ENTRY_POINT int munmap(void* at, std::size_t bytes) noexcept {
  return NEARFAR_MAPPING::unmap(at, bytes, NEARFAR_CALL_SITE);
}

} // extern "C"
