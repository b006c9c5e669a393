// Loaded into the program under trace: tells the recorder of every allocation, its site and its
// end.
//
// Channel        a load after a marked no-operation (plugin/opcode.hpp), of a description or of the
//                block itself, which the recorder sees; where nobody watches, it does nothing.
// Sites          the recorder follows frame pointers from here (plugin/allocation.hpp).
// Allocator      whichever the program has; libc's own while that is being looked up.
// Thread safety  any thread.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <new>

#include "trace/plugin/allocation.hpp"

#define NEARFAR_EXPORT [[gnu::visibility("default"), gnu::used]]
#define NEARFAR_SITE __builtin_return_address(0), __builtin_frame_address(0)

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

// The instrumented recorder, where the program has it.
[[gnu::weak]] void nearfar_trace_allocated(const nearfar::trace::Allocation*);
[[gnu::weak]] void nearfar_trace_freed(const void*);
}

namespace {

using namespace nearfar::trace;

thread_local bool looking_up [[gnu::tls_model("initial-exec")]] = false;

struct Allocator {
  void* (*malloc)(std::size_t);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  void* (*memalign)(std::size_t, std::size_t);
  void (*free)(void*);
};
Allocator libc = {__libc_malloc, __libc_calloc, __libc_realloc, __libc_memalign, __libc_free};
Allocator next;
std::atomic<bool> found{false};

template <class Function>
void look_up(Function*& function, const char* name, Function* otherwise) {
  auto* got = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  function = got != nullptr ? got : otherwise;
}

[[gnu::noinline]] const Allocator& look_up_all() {
  if (looking_up) return libc;
  looking_up = true;
  look_up(next.malloc, "malloc", libc.malloc);
  look_up(next.calloc, "calloc", libc.calloc);
  look_up(next.realloc, "realloc", libc.realloc);
  look_up(next.memalign, "memalign", libc.memalign);
  look_up(next.free, "free", libc.free);
  looking_up = false;
  found.store(true, std::memory_order_release);
  return next;
}

[[gnu::always_inline]] inline const Allocator& real() {
  return found.load(std::memory_order_acquire) ? next : look_up_all();
}

/// Both instructions must be translated together: in one line.
[[gnu::always_inline]] inline void tell_allocated(const Allocation& allocation) {
  asm volatile(".p2align 4\n\tnopl 0x4e464e46(%%rax)\n\tmovq (%0), %%rax"
               :
               : "r"(&allocation)
               : "rax", "memory");
  if (nearfar_trace_allocated != nullptr) nearfar_trace_allocated(&allocation);
}
[[gnu::always_inline]] inline void tell_freed(const void* block) {
  asm volatile(".p2align 4\n\tnopl 0x4e464e47(%%rax)\n\tmovb (%0), %%al"
               :
               : "r"(block)
               : "rax", "memory");
  if (nearfar_trace_freed != nullptr) nearfar_trace_freed(block);
}

[[gnu::always_inline]] inline void* tell(void* block, std::size_t bytes, const void* caller,
                                         const void* frame, const void* before = nullptr) {
  if (block != nullptr)
    tell_allocated(
        {reinterpret_cast<std::uint64_t>(block), bytes, reinterpret_cast<std::uint64_t>(before),
         reinterpret_cast<std::uint64_t>(caller), reinterpret_cast<std::uint64_t>(frame)});
  return block;
}

[[gnu::always_inline]] inline void release(void* block) {
  if (block == nullptr) return;
  tell_freed(block);
  real().free(block);
}

[[gnu::always_inline]] inline void* resize(void* block, std::size_t bytes, const void* caller,
                                           const void* frame) {
  if (block == nullptr) return tell(real().malloc(bytes), bytes, caller, frame);
  if (bytes == 0) tell_freed(block);
  return tell(real().realloc(block, bytes), bytes, caller, frame, block);
}

/// What the program's children are started with, who are not traced, does not name this library.
[[gnu::constructor]] void leave_environment() {
  real();
  const char* others = std::getenv("NEARFAR_TRACE_PRELOAD");
  if (others != nullptr && others[0] != '\0')
    setenv("LD_PRELOAD", others, 1);
  else
    unsetenv("LD_PRELOAD");
  unsetenv("NEARFAR_TRACE_PRELOAD");
}

} // namespace

extern "C" {

NEARFAR_EXPORT void* malloc(std::size_t bytes) noexcept {
  return tell(real().malloc(bytes), bytes, NEARFAR_SITE);
}
NEARFAR_EXPORT void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return tell(real().calloc(count, bytes), count * bytes, NEARFAR_SITE);
}
NEARFAR_EXPORT void* realloc(void* block, std::size_t bytes) noexcept {
  return resize(block, bytes, NEARFAR_SITE);
}
NEARFAR_EXPORT void* reallocarray(void* block, std::size_t count, std::size_t bytes) noexcept {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) all = SIZE_MAX; // which is refused
  return resize(block, all, NEARFAR_SITE);
}
NEARFAR_EXPORT void free(void* block) noexcept { release(block); }
NEARFAR_EXPORT void cfree(void* block) noexcept { release(block); }
NEARFAR_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return tell(real().memalign(alignment, bytes), bytes, NEARFAR_SITE);
}
NEARFAR_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return tell(real().memalign(alignment, bytes), bytes, NEARFAR_SITE);
}
NEARFAR_EXPORT int posix_memalign(void** result, std::size_t alignment,
                                  std::size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0)
    return 22;
  void* block = tell(real().memalign(alignment, bytes), bytes, NEARFAR_SITE);
  if (block == nullptr) return 12;
  *result = block;
  return 0;
}
NEARFAR_EXPORT void* valloc(std::size_t bytes) noexcept {
  return tell(real().memalign(4096, bytes), bytes, NEARFAR_SITE);
}
NEARFAR_EXPORT void* pvalloc(std::size_t bytes) noexcept {
  const std::size_t whole = (bytes + 4095) & ~std::size_t{4095};
  return tell(real().memalign(4096, whole), whole, NEARFAR_SITE);
}
}

// operator new allocates by malloc(); here it is seen with the site of who calls it. Where there is
// no memory, the real one throws.
namespace {

[[gnu::always_inline]] inline void* make(std::size_t bytes, std::size_t alignment, const char* name,
                                         const void* caller, const void* frame) {
  void* block = alignment == 0 ? real().malloc(bytes == 0 ? 1 : bytes)
                               : real().memalign(alignment, bytes == 0 ? 1 : bytes);
  if (block != nullptr) return tell(block, bytes, caller, frame);
  void* other = dlsym(RTLD_NEXT, name);
  if (other == nullptr) std::abort();
  return alignment == 0
             ? reinterpret_cast<void* (*)(std::size_t)>(other)(bytes)
             : reinterpret_cast<void* (*)(std::size_t, std::size_t)>(other)(bytes, alignment);
}

} // namespace

NEARFAR_EXPORT void* operator new(std::size_t bytes) {
  return make(bytes, 0, "_Znwm", NEARFAR_SITE);
}
NEARFAR_EXPORT void* operator new[](std::size_t bytes) {
  return make(bytes, 0, "_Znam", NEARFAR_SITE);
}
NEARFAR_EXPORT void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return make(bytes, static_cast<std::size_t>(alignment), "_ZnwmSt11align_val_t", NEARFAR_SITE);
}
NEARFAR_EXPORT void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return make(bytes, static_cast<std::size_t>(alignment), "_ZnamSt11align_val_t", NEARFAR_SITE);
}
NEARFAR_EXPORT void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return tell(real().malloc(bytes == 0 ? 1 : bytes), bytes, NEARFAR_SITE);
}
NEARFAR_EXPORT void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return tell(real().malloc(bytes == 0 ? 1 : bytes), bytes, NEARFAR_SITE);
}
