// Calls of the C library read and write too: where a program is linked with --wrap, they come here.
//
// Included after callbacks.hpp, and like it by one file of a program, which defines on_read and
// on_write. Wrapped: memcpy, memmove, memset, memcmp, bcmp.
#pragma once

#include <cstddef>

extern "C" {

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
