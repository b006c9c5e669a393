// A store in place that readers without a guard may see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nearfar::persist {

/// Copies a value to `at`; an aligned word is stored atomically.
inline void store_value(std::byte* at, const void* value, std::size_t bytes) {
  if (bytes == 8 && reinterpret_cast<std::uintptr_t>(at) % 8 == 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, value, sizeof word);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(at), word, __ATOMIC_RELEASE);
  } else {
    std::memcpy(at, value, bytes);
  }
}

} // namespace nearfar::persist
