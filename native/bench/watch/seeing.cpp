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
inline void on_atomic(const void*, bool) {}

} // namespace

#include "trace/instrumented/callbacks.hpp"
#include "trace/instrumented/wrapped_calls.hpp"

namespace nearfar::bench {

void see(cache::Watched* caches) { seeing = caches; }

bool SeeFlushes::record(storelog::EventKind kind, const void* at, std::size_t bytes,
                        storelog::Site) {
  if (kind != storelog::EventKind::flush || seeing == nullptr || inside) return true;
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
