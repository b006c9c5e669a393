// Loaded into the traced program: reports each allocation, its call site and its end to the
// recorder.
//
// Channel        a load after a marked no-operation (plugin/opcode.hpp), of a description or of the
//                block itself, which the recorder sees. Without a recorder it has no effect.
// Call sites     the recorder follows frame pointers from here (plugin/allocation.hpp).
// Allocator      the program's; libc's while that is being looked up.
// Thread safety  any thread.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <new>

#include "base/call_site.hpp"
#include "base/library_new.hpp"
#include "trace/plugin/allocation.hpp"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

// The instrumented recorder, if the program has it.
[[gnu::weak]] void nearfar_trace_allocated(const nearfar::trace::Allocation*);
[[gnu::weak]] void nearfar_trace_freed(const void*);
}

namespace {

using nearfar::CallSite;
using nearfar::trace::Allocation;

/// The functions of an allocator.
struct NextMalloc {
  void* (*malloc)(std::size_t);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  void* (*memalign)(std::size_t, std::size_t);
  void (*free)(void*);
};
NextMalloc libc_malloc = {__libc_malloc, __libc_calloc, __libc_realloc, __libc_memalign,
                          __libc_free};
NextMalloc program_malloc;
std::atomic<bool> is_found{false};
thread_local bool looking_up [[gnu::tls_model("initial-exec")]] = false;

template <class Function>
void look_up(Function*& function, const char* name, Function* fallback) {
  auto* found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  function = found != nullptr ? found : fallback;
}

[[gnu::noinline]] const NextMalloc& look_up_program_malloc() {
  if (looking_up) return libc_malloc;
  looking_up = true;
  look_up(program_malloc.malloc, "malloc", libc_malloc.malloc);
  look_up(program_malloc.calloc, "calloc", libc_malloc.calloc);
  look_up(program_malloc.realloc, "realloc", libc_malloc.realloc);
  look_up(program_malloc.memalign, "memalign", libc_malloc.memalign);
  look_up(program_malloc.free, "free", libc_malloc.free);
  looking_up = false;
  is_found.store(true, std::memory_order_release);
  return program_malloc;
}

[[gnu::always_inline]] inline const NextMalloc& next() {
  return is_found.load(std::memory_order_acquire) ? program_malloc : look_up_program_malloc();
}

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
    return reported(next().malloc(bytes), bytes, site);
  }
  [[gnu::always_inline]] static void* allocate_zeroed(std::size_t count, std::size_t bytes,
                                                      CallSite site) {
    return reported(next().calloc(count, bytes), count * bytes, site);
  }
  [[gnu::always_inline]] static void* allocate_aligned(std::size_t alignment, std::size_t bytes,
                                                       CallSite site) {
    return reported(next().memalign(alignment, bytes), bytes, site);
  }
  [[gnu::always_inline]] static void* reallocate(void* block, std::size_t bytes, CallSite site) {
    if (block == nullptr) return allocate(bytes, site);
    if (bytes == 0) report_free(block);
    return reported(next().realloc(block, bytes), bytes, site, block);
  }
  [[gnu::always_inline]] static void release(void* block) {
    if (block == nullptr) return;
    report_free(block);
    next().free(block);
  }

  /// Calls operator new of the C++ library, which throws.
  static void* new_failed(std::size_t bytes, std::size_t alignment, CallSite) {
    using New = void* (*)(std::size_t);
    using AlignedNew = void* (*)(std::size_t, std::size_t);
    void* function = dlsym(RTLD_NEXT, alignment == 0 ? "_Znwm" : "_ZnwmSt11align_val_t");
    if (function == nullptr) std::abort();
    return alignment == 0 ? reinterpret_cast<New>(function)(bytes)
                          : reinterpret_cast<AlignedNew>(function)(bytes, alignment);
  }
  static void* nothrow_new_failed(std::size_t bytes, std::size_t alignment) {
    return nearfar::call_library_nothrow_new(bytes, alignment);
  }
};

/// Removes this library from LD_PRELOAD of the program's children, which are not traced.
[[gnu::constructor]] void restore_environment() {
  next();
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
