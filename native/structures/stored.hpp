// Types that structures keep: how they are passed in, handed out, and turned into bytes.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace nearfar::structures {

/// Tag: byte strings of any length up to a record's limit.
struct Bytes {};

/// Values whose bytes are the whole value, fit to lie in a pool.
template <class T>
concept Plain = std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T> &&
                !std::is_pointer_v<T> && !std::is_empty_v<T>;

template <class T>
struct Stored {
  static_assert(Plain<T>, "a persistent type is trivially copyable and holds no pointers");
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
