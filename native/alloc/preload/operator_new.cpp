// Replaces operator new and delete, so that call sites are those of the program, not of libstdc++.
// If memory is exhausted, libstdc++ does what the standard requires, if the program has it.
#include <bit>
#include <cstddef>
#include <dlfcn.h>
#include <new>

#include "alloc/diagnostics.hpp"
#include "alloc/preload/placement.hpp"
#include "os/process.hpp"

using namespace nearfar::alloc;

extern "C" void free(void* ptr) noexcept;

namespace {

/// Calls the program's new handler. False if there is none.
bool call_new_handler() {
  using Get = std::new_handler (*)();
  const auto get = reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "_ZSt15get_new_handlerv"));
  const std::new_handler handler = get == nullptr ? nullptr : get();
  if (handler == nullptr) return false;
  handler();
  return true;
}

/// Throws std::bad_alloc.
[[noreturn]] void fail(std::size_t size) {
  using Throw = void (*)();
  const auto throw_bad_alloc =
      reinterpret_cast<Throw>(dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv"));
  if (throw_bad_alloc != nullptr) throw_bad_alloc();
  log_error("operator new: no room for %zu bytes, and no C++ library to throw std::bad_alloc",
            size);
  nearfar::os::abort_process();
}

[[gnu::always_inline]] inline void* plain(std::size_t size, const void* address,
                                          const void* frame) {
  return place(size, address, frame,
               [&](unsigned tier) { return process_allocator.allocate(tier, size); });
}

[[gnu::always_inline]] inline void* aligned(std::size_t size, std::align_val_t alignment,
                                            const void* address, const void* frame) {
  return place(size, address, frame, [&](unsigned tier) {
    return process_allocator.allocate_aligned(tier, static_cast<std::size_t>(alignment), size);
  });
}

/// operator new when memory is exhausted: calls the handler until an allocation succeeds, the
/// handler throws, or there is no handler.
template <class Try>
void* retry_with_handler(std::size_t size, const Try& try_again) {
  while (call_new_handler())
    if (void* block = try_again(); block != nullptr) return block;
  fail(size);
}

/// operator new(nothrow) when memory is exhausted. A handler may throw, which only the C++ library
/// can catch: its function calls operator new above. Without that library there is no handler.
template <class... Alignment>
void* library_nothrow_new(std::size_t size, Alignment... alignment) {
  using New = void* (*)(std::size_t, Alignment..., const std::nothrow_t&) noexcept;
  const char* name =
      sizeof...(alignment) == 0 ? "_ZnwmRKSt9nothrow_t" : "_ZnwmSt11align_val_tRKSt9nothrow_t";
  const auto library = reinterpret_cast<New>(dlsym(RTLD_NEXT, name));
  return library == nullptr ? nullptr : library(size, alignment..., std::nothrow_t{});
}

} // namespace

using Nothrow = const std::nothrow_t&;
using Align = std::align_val_t;

void* operator new(std::size_t size) {
  const void *site = __builtin_return_address(0), *frame = __builtin_frame_address(0);
  void* block = plain(size, site, frame);
  return block != nullptr ? block
                          : retry_with_handler(size, [&] { return plain(size, site, frame); });
}
void* operator new[](std::size_t size) {
  const void *site = __builtin_return_address(0), *frame = __builtin_frame_address(0);
  void* block = plain(size, site, frame);
  return block != nullptr ? block
                          : retry_with_handler(size, [&] { return plain(size, site, frame); });
}
void* operator new(std::size_t size, Align alignment) {
  const void *site = __builtin_return_address(0), *frame = __builtin_frame_address(0);
  void* block = aligned(size, alignment, site, frame);
  return block != nullptr
             ? block
             : retry_with_handler(size, [&] { return aligned(size, alignment, site, frame); });
}
void* operator new[](std::size_t size, Align alignment) {
  const void *site = __builtin_return_address(0), *frame = __builtin_frame_address(0);
  void* block = aligned(size, alignment, site, frame);
  return block != nullptr
             ? block
             : retry_with_handler(size, [&] { return aligned(size, alignment, site, frame); });
}
void* operator new(std::size_t size, Nothrow) noexcept {
  void* block = plain(size, NEARFAR_CALL_SITE);
  return block != nullptr ? block : library_nothrow_new(size);
}
void* operator new[](std::size_t size, Nothrow) noexcept {
  void* block = plain(size, NEARFAR_CALL_SITE);
  return block != nullptr ? block : library_nothrow_new(size);
}
void* operator new(std::size_t size, Align alignment, Nothrow) noexcept {
  void* block = aligned(size, alignment, NEARFAR_CALL_SITE);
  return block != nullptr ? block : library_nothrow_new(size, alignment);
}
void* operator new[](std::size_t size, Align alignment, Nothrow) noexcept {
  void* block = aligned(size, alignment, NEARFAR_CALL_SITE);
  return block != nullptr ? block : library_nothrow_new(size, alignment);
}

void operator delete(void* ptr) noexcept { free(ptr); }
void operator delete[](void* ptr) noexcept { free(ptr); }
void operator delete(void* ptr, std::size_t) noexcept { free(ptr); }
void operator delete[](void* ptr, std::size_t) noexcept { free(ptr); }
void operator delete(void* ptr, Align) noexcept { free(ptr); }
void operator delete[](void* ptr, Align) noexcept { free(ptr); }
void operator delete(void* ptr, std::size_t, Align) noexcept { free(ptr); }
void operator delete[](void* ptr, std::size_t, Align) noexcept { free(ptr); }
void operator delete(void* ptr, Nothrow) noexcept { free(ptr); }
void operator delete[](void* ptr, Nothrow) noexcept { free(ptr); }
void operator delete(void* ptr, Align, Nothrow) noexcept { free(ptr); }
void operator delete[](void* ptr, Align, Nothrow) noexcept { free(ptr); }
