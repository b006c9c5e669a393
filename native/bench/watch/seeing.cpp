// Compiled without instrumentation; templates of the standard library that it shares with code that
// is not may come from there, so what happens inside a callback is not looked at.
#include "bench/watch/seeing.hpp"

#include <cstddef>

namespace {

nearfar::cache::Watched* seeing = nullptr;
bool inside = false;

void seen(const void* at, std::size_t bytes, nearfar::cache::Access kind) {
  if (seeing == nullptr || inside) return;
  inside = true;
  seeing->access(reinterpret_cast<std::uintptr_t>(at), bytes, kind);
  inside = false;
}

inline void on_read(const void* at, std::size_t bytes, const void*) {
  seen(at, bytes, nearfar::cache::Access::load);
}
inline void on_write(const void* at, std::size_t bytes, const void*) {
  seen(at, bytes, nearfar::cache::Access::store);
}

} // namespace

#include "trace/instrumented/callbacks.hpp"

extern "C" {

// Calls of the C library read and write too; the linker sends them here (--wrap).
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __real_memmove(void* to, const void* from, std::size_t bytes);
void* __real_memset(void* at, int value, std::size_t bytes);
int __real_memcmp(const void* a, const void* b, std::size_t bytes);

void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  on_read(from, bytes, nullptr);
  on_write(to, bytes, nullptr);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  on_read(from, bytes, nullptr);
  on_write(to, bytes, nullptr);
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* at, int value, std::size_t bytes) {
  on_write(at, bytes, nullptr);
  return __real_memset(at, value, bytes);
}
int __wrap_memcmp(const void* a, const void* b, std::size_t bytes) {
  on_read(a, bytes, nullptr);
  on_read(b, bytes, nullptr);
  return __real_memcmp(a, b, bytes);
}
int __wrap_bcmp(const void* a, const void* b, std::size_t bytes) {
  return __wrap_memcmp(a, b, bytes);
}
}

namespace nearfar::bench {

void see(cache::Watched* caches) { seeing = caches; }

bool SeeFlushes::record(storelog::Kind kind, const void* at, std::size_t bytes, storelog::Site) {
  if (kind != storelog::Kind::flush || seeing == nullptr || inside) return true;
  inside = true;
  ++calls_;
  const auto first = reinterpret_cast<std::uintptr_t>(at) & ~(storelog::line_bytes - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(at) + bytes;
  for (auto line = first; line < end; line += storelog::line_bytes)
    seeing->flush(line);
  inside = false;
  return true;
}

} // namespace nearfar::bench
