// operator new and delete, so that a plan sees who called new, not libstdc++. Where memory is
// short, what the standard asks for is done by libstdc++, if the program has it.
#include <bit>
#include <cstddef>
#include <dlfcn.h>
#include <new>

#include "alloc/preload/placing.hpp"
#include "alloc/preload/real.hpp"
#include "alloc/trouble.hpp"
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
  say("operator new: no room for %zu bytes, and no C++ library to throw std::bad_alloc", size);
  nearfar::os::abort_process();
}

template <class AllocateIn>
[[gnu::always_inline]] inline void* try_new(std::size_t size, const void* address,
                                            const void* frame, const AllocateIn& allocate_in) {
  for (;;) {
    void* block = place(size, address, frame, allocate_in);
    if (block != nullptr || !call_new_handler()) return block;
  }
}

[[gnu::always_inline]] inline void* plain(std::size_t size, const void* address,
                                          const void* frame) {
  return try_new(size, address, frame, [&](unsigned tier) { return allocate(tier, size); });
}

[[gnu::always_inline]] inline void* aligned(std::size_t size, std::align_val_t alignment,
                                            const void* address, const void* frame) {
  return try_new(size, address, frame, [&](unsigned tier) {
    return allocate_aligned(tier, static_cast<std::size_t>(alignment), size);
  });
}

} // namespace

using Nothrow = const std::nothrow_t&;
using Align = std::align_val_t;

void* operator new(std::size_t size) {
  void* block = plain(size, NEARFAR_CALL_SITE);
  if (block == nullptr) fail(size);
  return block;
}
void* operator new[](std::size_t size) {
  void* block = plain(size, NEARFAR_CALL_SITE);
  if (block == nullptr) fail(size);
  return block;
}
void* operator new(std::size_t size, Align alignment) {
  void* block = aligned(size, alignment, NEARFAR_CALL_SITE);
  if (block == nullptr) fail(size);
  return block;
}
void* operator new[](std::size_t size, Align alignment) {
  void* block = aligned(size, alignment, NEARFAR_CALL_SITE);
  if (block == nullptr) fail(size);
  return block;
}
void* operator new(std::size_t size, Nothrow) noexcept { return plain(size, NEARFAR_CALL_SITE); }
void* operator new[](std::size_t size, Nothrow) noexcept { return plain(size, NEARFAR_CALL_SITE); }
void* operator new(std::size_t size, Align alignment, Nothrow) noexcept {
  return aligned(size, alignment, NEARFAR_CALL_SITE);
}
void* operator new[](std::size_t size, Align alignment, Nothrow) noexcept {
  return aligned(size, alignment, NEARFAR_CALL_SITE);
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
