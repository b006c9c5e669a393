// The explorer's ears: every read and write of the structures under test, which are compiled with
// -fsanitize=thread, asks the arena. This file itself is compiled without instrumentation.
#include <cstddef>

#include "crash/arena.hpp"

namespace {

inline void on_read(const void* at, std::size_t bytes, const void*) {
  nearfar::crash::on_read(at, bytes);
}
inline void on_write(const void* at, std::size_t bytes, const void*) {
  nearfar::crash::on_write(at, bytes);
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
  nearfar::crash::on_read(from, bytes);
  nearfar::crash::on_write(to, bytes);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  nearfar::crash::on_read(from, bytes);
  nearfar::crash::on_write(to, bytes);
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* at, int value, std::size_t bytes) {
  nearfar::crash::on_write(at, bytes);
  return __real_memset(at, value, bytes);
}
int __wrap_memcmp(const void* a, const void* b, std::size_t bytes) {
  nearfar::crash::on_read(a, bytes);
  nearfar::crash::on_read(b, bytes);
  return __real_memcmp(a, b, bytes);
}
int __wrap_bcmp(const void* a, const void* b, std::size_t bytes) {
  return __wrap_memcmp(a, b, bytes);
}
}
