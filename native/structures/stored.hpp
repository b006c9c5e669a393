// Types of keys and values in structures: as arguments, as results, and as bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "nearfar/persist/storable.hpp"

namespace nearfar::structures {

/// Tag: byte strings of any length up to a record's limit.
struct Bytes {};

template <class T>
struct Stored {
  static_assert(persist::detail::check_storable<T>());
  using In = const T&;
  using Out = T;
  static constexpr bool fits_word = sizeof(T) <= sizeof(std::uint64_t);

  static std::string_view bytes(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  static bool assign(T& out, std::string_view bytes) {
    if (bytes.size() != sizeof out) return false;
    std::memcpy(&out, bytes.data(), sizeof out);
    return true;
  }
  static std::uint64_t word(const T& value) {
    std::uint64_t word = 0;
    if constexpr (fits_word) std::memcpy(&word, &value, sizeof value);
    return word;
  }
  static T of_word(std::uint64_t word) {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
};

template <>
struct Stored<Bytes> {
  using In = std::string_view;
  using Out = std::string;
  static constexpr bool fits_word = false;

  static std::string_view bytes(std::string_view value) { return value; }
  static bool assign(std::string& out, std::string_view bytes) {
    out.assign(bytes);
    return true;
  }
};

} // namespace nearfar::structures
