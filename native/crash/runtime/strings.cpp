// Functions of the C library that store to memory which the caller names. The recorder replaces
// them so that a store is recorded as one, at the line of the call, and not as the stores of the C
// library's own machine code.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "crash/runtime/copies.hpp"
#include "crash/runtime/replaced.hpp"

using namespace nearfar::crash::runtime;
using nearfar::storelog::EventKind;

namespace {

void* copied(void* to, const void* from, std::size_t bytes, const void* code) {
  recorded_copy(to, from, bytes, EventKind::store, code);
  return to;
}

void* filled(void* to, int value, std::size_t bytes, const void* code) {
  recorded_fill(to, value, bytes, EventKind::store, code);
  return to;
}

/// strncpy(). Returns the end of the string.
char* copied_padded(char* to, const char* from, std::size_t bytes, const void* code) {
  const std::size_t length = strnlen(from, bytes);
  copied(to, from, length, code);
  if (length < bytes) filled(to + length, 0, bytes - length, code);
  return to + length;
}

char* appended(char* to, const char* from, std::size_t most, const void* code) {
  char* const end = to + std::strlen(to);
  const std::size_t length = strnlen(from, most);
  copied(end, from, length, code);
  filled(end + length, 0, 1, code);
  return to;
}

void* copied_until(void* to, const void* from, int last, std::size_t bytes, const void* code) {
  const void* const found = std::memchr(from, last, bytes);
  if (found != nullptr)
    bytes =
        static_cast<std::size_t>(static_cast<const char*>(found) - static_cast<const char*>(from)) +
        1;
  copied(to, from, bytes, code);
  return found == nullptr ? nullptr : static_cast<char*>(to) + bytes;
}

} // namespace

// The names with _chk are those that the compiler calls when it fortifies.
extern "C" {

#define NEARFAR_BOTH(result, name, call, ...)                                                      \
  NEARFAR_EXPORT result name(__VA_ARGS__) noexcept { return call; }                                \
  NEARFAR_EXPORT result __##name##_chk(__VA_ARGS__, std::size_t) noexcept { return call; }

NEARFAR_BOTH(void*, memcpy, (copied(to, from, bytes, NEARFAR_CALLER)), void* to, const void* from,
             std::size_t bytes)
NEARFAR_BOTH(void*, memmove, (copied(to, from, bytes, NEARFAR_CALLER)), void* to, const void* from,
             std::size_t bytes)
NEARFAR_BOTH(void*, mempcpy, (static_cast<char*>(copied(to, from, bytes, NEARFAR_CALLER)) + bytes),
             void* to, const void* from, std::size_t bytes)
NEARFAR_BOTH(void*, memset, (filled(to, value, bytes, NEARFAR_CALLER)), void* to, int value,
             std::size_t bytes)
NEARFAR_BOTH(char*, strcpy,
             (static_cast<char*>(copied(to, from, std::strlen(from) + 1, NEARFAR_CALLER))),
             char* to, const char* from)
NEARFAR_BOTH(char*, stpcpy,
             (static_cast<char*>(copied(to, from, std::strlen(from) + 1, NEARFAR_CALLER)) +
              std::strlen(from)),
             char* to, const char* from)
NEARFAR_BOTH(char*, strncpy, ((copied_padded(to, from, bytes, NEARFAR_CALLER), to)), char* to,
             const char* from, std::size_t bytes)
NEARFAR_BOTH(char*, stpncpy, (copied_padded(to, from, bytes, NEARFAR_CALLER)), char* to,
             const char* from, std::size_t bytes)
NEARFAR_BOTH(char*, strcat, (appended(to, from, SIZE_MAX, NEARFAR_CALLER)), char* to,
             const char* from)
NEARFAR_BOTH(char*, strncat, (appended(to, from, bytes, NEARFAR_CALLER)), char* to,
             const char* from, std::size_t bytes)
#undef NEARFAR_BOTH

NEARFAR_EXPORT void bzero(void* to, std::size_t bytes) noexcept {
  filled(to, 0, bytes, NEARFAR_CALLER);
}
NEARFAR_EXPORT void explicit_bzero(void* to, std::size_t bytes) noexcept {
  filled(to, 0, bytes, NEARFAR_CALLER);
}
NEARFAR_EXPORT void __explicit_bzero_chk(void* to, std::size_t bytes, std::size_t) noexcept {
  filled(to, 0, bytes, NEARFAR_CALLER);
}
NEARFAR_EXPORT void* memccpy(void* to, const void* from, int last, std::size_t bytes) noexcept {
  return copied_until(to, from, last, bytes, NEARFAR_CALLER);
}
}
