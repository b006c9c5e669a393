// One interface for all allocators: replacements of malloc, memkind's kinds, libhmalloc's tiers.
//
// An allocator that replaces malloc is preloaded (LD_PRELOAD) and called as malloc and free;
// memkind and libhmalloc have calls of their own, which are looked up in the libraries that are
// loaded.
//
// Thread safety  values; their functions have the thread safety of the library.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <variant>

#include "base/result.hpp"

namespace nearfar::bench {

/// malloc and free of this process, including preloaded ones.
struct Malloc {
  void* allocate(std::size_t bytes) const { return std::malloc(bytes); }
  void release(void* block) const { std::free(block); }
};

/// memkind_malloc and memkind_free of one kind.
struct Memkind {
  void* (*malloc)(void* kind, std::size_t bytes) = nullptr;
  void (*free)(void* kind, void* block) = nullptr;
  void* kind = nullptr;

  void* allocate(std::size_t bytes) const { return malloc(kind, bytes); }
  void release(void* block) const { free(kind, block); }
};

/// hm_malloc and hm_free of one tier.
struct Hmalloc {
  void* (*malloc)(int tier, std::size_t bytes) = nullptr;
  void (*free)(void* block) = nullptr;
  int tier = 0;

  void* allocate(std::size_t bytes) const { return malloc(tier, bytes); }
  void release(void* block) const { free(block); }
};

using Allocator = std::variant<Malloc, Memkind, Hmalloc>;

/// Finds an allocator by name. "glibc", "mimalloc" and "jemalloc": malloc, if it is theirs;
/// "preload": malloc, if it is not the C library's; "memkind:KIND", with KIND as in MEMKIND_KIND
/// ("default", "regular", …) or "pmem:DIR"; "hmalloc:TIER", with TIER the name of a tier that is
/// configured ("near", "far", …) or the specification of one to make. Errors: bad_input (no such
/// name, kind or tier), not_found (its library is not loaded), unsupported (this machine does not
/// have the kind or tier).
Result<Allocator> find_allocator(const char* name);

/// The file that an allocator's code was loaded from; "?" if the loader does not report it.
const char* library_of(const Allocator& allocator);

} // namespace nearfar::bench
