// Loaded into the traced program: reports each allocation, its call site and its end to the
// recorder.
//
// Channel        a load after a marked no-operation (recorder/opcode.hpp), of a description or of
//                the block itself, which the recorder sees. Without a recorder it has no effect.
// Call sites     the recorder follows frame pointers from here (recorder/allocation.hpp).
// Allocator      the program's; libc's while that is being looked up.
// Thread safety  any thread.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/call_site.hpp"
#include "base/next_malloc.hpp"
#include "trace/recorder/allocation.hpp"

extern "C" {
// The instrumented recorder, if the program has it.
[[gnu::weak]] void nearfar_trace_allocated(const nearfar::trace::Allocation*);
[[gnu::weak]] void nearfar_trace_freed(const void*);
}

namespace {

using nearfar::CallSite;
using nearfar::next_malloc;
using nearfar::trace::Allocation;

/// The recorder requires both instructions in one translation block: they are in one cache line.
[[gnu::always_inline]] inline void report_allocation(const Allocation& allocation) {
  asm volatile(".p2align 4\n\tnopl 0x4e464e46(%%rax)\n\tmovq (%0), %%rax"
               :
               : "r"(&allocation)
               : "rax", "memory");
  if (nearfar_trace_allocated != nullptr) nearfar_trace_allocated(&allocation);
}
[[gnu::always_inline]] inline void report_free(const void* block) {
  asm volatile(".p2align 4\n\tnopl 0x4e464e47(%%rax)\n\tmovb (%0), %%al"
               :
               : "r"(block)
               : "rax", "memory");
  if (nearfar_trace_freed != nullptr) nearfar_trace_freed(block);
}

/// Reports a block, and returns it. `before`: its address before it was resized.
[[gnu::always_inline]] inline void* reported(void* block, std::size_t bytes, CallSite site,
                                             const void* before = nullptr) {
  if (block != nullptr)
    report_allocation({reinterpret_cast<std::uint64_t>(block), bytes,
                       reinterpret_cast<std::uint64_t>(before),
                       reinterpret_cast<std::uint64_t>(site.return_address),
                       reinterpret_cast<std::uint64_t>(site.frame)});
  return block;
}

/// The entry points with the program's allocator.
struct ReportedMalloc {
  [[gnu::always_inline]] static void* allocate(std::size_t bytes, CallSite site) {
    return reported(next_malloc().malloc(bytes), bytes, site);
  }
  [[gnu::always_inline]] static void* allocate_zeroed(std::size_t count, std::size_t bytes,
                                                      CallSite site) {
    return reported(next_malloc().calloc(count, bytes), count * bytes, site);
  }
  [[gnu::always_inline]] static void* allocate_aligned(std::size_t alignment, std::size_t bytes,
                                                       CallSite site) {
    return reported(next_malloc().memalign(alignment, bytes), bytes, site);
  }
  [[gnu::always_inline]] static void* reallocate(void* block, std::size_t bytes, CallSite site) {
    if (block == nullptr) return allocate(bytes, site);
    if (bytes == 0) report_free(block);
    return reported(next_malloc().realloc(block, bytes), bytes, site, block);
  }
  [[gnu::always_inline]] static void release_sized(void* block, std::size_t) { release(block); }

  [[gnu::always_inline]] static void release(void* block) {
    if (block == nullptr) return;
    report_free(block);
    next_malloc().free(block);
  }

  static void* new_failed(std::size_t bytes, std::size_t alignment, CallSite) {
    return nearfar::call_library_new(bytes, alignment);
  }
  static void* nothrow_new_failed(std::size_t bytes, std::size_t alignment) {
    return nearfar::call_library_nothrow_new(bytes, alignment);
  }
};

/// Removes this library from LD_PRELOAD of the program's children, which are not traced.
[[gnu::constructor]] void restore_environment() {
  next_malloc();
  const char* others = std::getenv("NEARFAR_TRACE_PRELOAD");
  if (others != nullptr && others[0] != '\0')
    setenv("LD_PRELOAD", others, 1);
  else
    unsetenv("LD_PRELOAD");
  unsetenv("NEARFAR_TRACE_PRELOAD");
}

} // namespace

#define NEARFAR_MALLOC ReportedMalloc
#include "base/malloc_entry_points.hpp"
