// Values that can be stored: those that mean the same after a restart.
//
// storable<T>    a value that a field can hold: arithmetic (not long double), enumerations, ptr,
//                array, std::array of such, and structures of such: trivially copyable, of standard
//                layout, without raw pointers, without padding (whose bytes would keep earlier
//                content, possibly secrets), aligned to at most 8 bytes, at most 4088 bytes.
// persistent<T>  a structure in a pool: its members are fields, secret fields, std::array of such,
//                and structures of such; no padding; at least one member.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "nearfar/persist/reflect.hpp"

namespace nearfar::persist {

template <class T, class Pool>
class ptr;
template <class T, class Pool>
class array;
template <class T>
class field;
template <class T>
class secret_field;

namespace detail {

template <class T>
inline constexpr bool is_ptr = false;
template <class T, class P>
inline constexpr bool is_ptr<ptr<T, P>> = true;
template <class T>
inline constexpr bool is_array = false;
template <class T, class P>
inline constexpr bool is_array<array<T, P>> = true;
template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_field = false;
template <class T>
inline constexpr bool is_field<field<T>> = true;
template <class T>
inline constexpr bool is_field<secret_field<T>> = true;
template <class T>
inline constexpr bool is_secret = false;
template <class T>
inline constexpr bool is_secret<secret_field<T>> = true;

template <class T>
consteval bool is_raw_pointer() {
  return std::is_pointer_v<T> || std::is_reference_v<T> || std::is_member_pointer_v<T> ||
         std::is_null_pointer_v<T>;
}

template <class T>
consteval bool is_leaf() {
  return std::is_arithmetic_v<T> || std::is_enum_v<T> || is_ptr<T> || is_array<T> ||
         is_raw_pointer<T>();
}

/// Whether holds(M) for T, or for all members of it, down to the leaves.
template <class T, class Holds>
consteval bool all_of(Holds holds) {
  if constexpr (is_leaf<T>() || is_field<T>) {
    return holds.template operator()<T>();
  } else if constexpr (is_std_array<T>) {
    return all_of<typename T::value_type>(holds);
  } else if constexpr (std::is_aggregate_v<T>) {
    return []<std::size_t... I>(std::index_sequence<I...>, Holds h) {
      return (all_of<std::remove_const_t<reflect::member_type<T, I>>>(h) && ...);
    }(std::make_index_sequence<reflect::count_members<T>()>{}, holds);
  } else {
    return holds.template operator()<T>();
  }
}

template <class T>
consteval std::size_t bytes_of_members() {
  if constexpr (is_leaf<T>() || is_field<T>) {
    // A long double has padding of its own: 0, so that no_padding() rejects it.
    return std::is_same_v<T, long double> ? 0 : sizeof(T);
  } else if constexpr (is_std_array<T>) {
    return bytes_of_members<typename T::value_type>() * std::tuple_size_v<T>;
  } else if constexpr (std::is_aggregate_v<T>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (std::size_t{0} + ... + bytes_of_members<reflect::member_type<T, I>>());
    }(std::make_index_sequence<reflect::count_members<T>()>{});
  } else {
    return sizeof(T);
  }
}

template <class T>
consteval bool no_raw_pointers() {
  return all_of<T>([]<class M>() { return !is_raw_pointer<M>(); });
}
template <class T>
consteval bool no_padding() {
  return bytes_of_members<T>() == sizeof(T);
}
template <class T>
consteval bool only_values() {
  return all_of<T>([]<class M>() { return is_leaf<M>() && !is_field<M>; });
}
template <class T>
consteval bool only_fields() {
  return !is_leaf<T>() && std::is_aggregate_v<T> &&
         all_of<T>([]<class M>() { return is_field<M>; });
}

/// Separate assertions, so that the compiler names the violated one.
template <class T>
consteval bool check_storable() {
  static_assert(!std::is_reference_v<T> && !std::is_const_v<T>, "storable: a plain type is wanted");
  static_assert(
      std::is_trivially_copyable_v<T>,
      "storable: the type is not trivially copyable, so its bytes alone are not its value");
  static_assert(std::is_standard_layout_v<T>,
                "storable: the type has no standard layout (virtual functions, mixed access)");
  if constexpr (std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T>) {
    static_assert(no_raw_pointers<T>(),
                  "storable: a raw pointer or reference means nothing after a restart: use ptr<T>");
    static_assert(no_padding<T>(),
                  "storable: the type has padding, whose bytes would be whatever was "
                  "there before, secrets too: add members or reorder them");
    static_assert(only_values<T>(),
                  "storable: a field inside a field, or a type of unknown members");
    static_assert(alignof(T) <= 8 && sizeof(T) <= 4088,
                  "storable: more than 4088 bytes, or alignment above 8: use an array");
  }
  return true;
}

template <class T>
consteval bool check_persistent() {
  static_assert(
      std::is_class_v<T> && std::is_aggregate_v<T>,
      "persistent: a structure of fields is wanted, without constructors or base classes");
  if constexpr (std::is_aggregate_v<T>) {
    static_assert(
        only_fields<T>(),
        "persistent: every member must be a field, or assigning to it would escape the log");
    static_assert(no_padding<T>(),
                  "persistent: the type has padding, whose bytes would be whatever "
                  "was there before, secrets too: add fields or reorder them");
    static_assert(std::is_standard_layout_v<T>, "persistent: the type has no standard layout");
  }
  return true;
}

} // namespace detail

template <class T>
concept storable =
    std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T> && !std::is_reference_v<T> &&
    detail::no_raw_pointers<T>() && detail::no_padding<T>() && detail::only_values<T>() &&
    alignof(T) <= 8 && sizeof(T) <= 4088;

template <class T>
concept persistent = std::is_class_v<T> && std::is_aggregate_v<T> && detail::only_fields<T>() &&
                     detail::no_padding<T>() && std::is_standard_layout_v<T>;

} // namespace nearfar::persist
