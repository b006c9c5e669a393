// Compiled without instrumentation. The linker may choose the instrumented version of templates of
// the standard library, so that accesses inside a callback are ignored.
#include "bench/miss_counter/access_receiver.hpp"

#include <cstddef>

namespace {

nearfar::cache::HierarchyVariants* receiver = nullptr;
bool inside = false;

void pass_on(const void* at, std::size_t bytes, nearfar::cache::Access kind) {
  if (receiver == nullptr || inside) return;
  inside = true;
  receiver->access(reinterpret_cast<std::uintptr_t>(at), bytes, kind);
  inside = false;
}

inline void on_init() {}
inline void on_read(const void* at, std::size_t bytes, const void*) {
  pass_on(at, bytes, nearfar::cache::Access::load);
}
inline void on_write(const void* at, std::size_t bytes, const void*) {
  pass_on(at, bytes, nearfar::cache::Access::store);
}
template <class Operation>
void on_atomic(const void* at, std::size_t bytes, const void* code, const Operation& operation) {
  on_write(at, bytes, code);
  operation();
}

} // namespace

#include "trace/instrumented/callbacks.hpp"
#include "trace/instrumented/wrapped_calls.hpp"

namespace nearfar::bench {

void set_access_receiver(cache::HierarchyVariants* caches) { receiver = caches; }

bool FlushReceiver::record(storelog::EventKind kind, const void* at, std::size_t bytes,
                           storelog::Site) {
  if (kind != storelog::EventKind::flush || receiver == nullptr || inside) return true;
  inside = true;
  ++calls_;
  const auto first = reinterpret_cast<std::uintptr_t>(at) & ~(storelog::line_bytes - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(at) + bytes;
  for (auto line = first; line < end; line += storelog::line_bytes)
    receiver->flush(line);
  inside = false;
  return true;
}

} // namespace nearfar::bench
