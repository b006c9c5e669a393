// The layout of a pool's types: their hash, and the stored type descriptors.
//
// A program states, in its pool type, the hash of every version of its layout, oldest first:
//
//   struct list_pool {
//     using root = list;
//     static constexpr char name[] = "intset";
//     static constexpr std::uint64_t layouts[] = {0x8a3c...u, 0x1f77...u}; // this is version 2
//   };
//
// The hash covers, for each type that the root reaches, the names, kinds, sizes and order of all
// members. After a change the program does not compile until the new hash is appended, which
// increments the version; the compiler's message has the number. A pool stores hash and version; a
// program with another hash or version refuses it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "nearfar/persist/array.hpp"
#include "nearfar/persist/field.hpp"
#include "persist/object_store.hpp"
#include "poolformat/heads.hpp"

namespace nearfar::persist {

namespace detail {

template <class... T>
struct types {};

/// Marks a type that is linked as array elements.
template <class T>
struct elements {
  using value_type = T;
};
template <class T>
inline constexpr bool is_elements = false;
template <class T>
inline constexpr bool is_elements<elements<T>> = true;

// The types that the root reaches, each once, in the order of discovery.

template <class T, class... Ts>
consteval auto reach(types<Ts...> known);
template <class T, std::size_t I, class... Ts>
consteval auto reach_members(types<Ts...> known);

template <class M, class... Ts>
consteval auto reach_member(types<Ts...> known) {
  if constexpr (is_field<M>)
    return reach_member<typename M::value_type>(known);
  else if constexpr (is_ptr<M>)
    return reach<typename M::element_type>(known);
  else if constexpr (is_array<M>)
    return reach<elements<typename M::element_type>>(known);
  else if constexpr (is_leaf<M>())
    return known;
  else if constexpr (is_std_array<M>)
    return reach_member<typename M::value_type>(known);
  else
    return reach_members<M, 0>(known);
}

template <class T, std::size_t I, class... Ts>
consteval auto reach_members(types<Ts...> known) {
  if constexpr (I == reflect::count_members<T>())
    return known;
  else
    return reach_members<T, I + 1>(reach_member<reflect::member_type<T, I>>(known));
}

template <class T, class... Ts>
consteval auto reach(types<Ts...> known) {
  if constexpr ((std::is_same_v<T, Ts> || ...)) {
    return known;
  } else if constexpr (is_elements<T>) {
    return types<Ts..., T>{};
  } else {
    static_assert(check_persistent<T>());
    return reach_members<T, 0>(types<Ts..., T>{});
  }
}

template <class Pool>
using types_of = decltype(reach<typename Pool::root>(types<>{}));

template <class T, class... Ts>
constexpr std::uint32_t index_in(types<Ts...>) {
  std::uint32_t index = 0;
  static_cast<void>(((std::is_same_v<T, Ts> || (++index, false)) || ...));
  return index;
}

/// Calls see<Leaf>(offset, name, secret) for each leaf of T: each part that is neither a
/// structure nor a std::array.
template <class T, class See>
constexpr void each_leaf(std::uint32_t offset, std::string_view name, bool secret, See& see) {
  if constexpr (is_elements<T>) {
    each_leaf<typename T::value_type>(offset, name, secret, see);
  } else if constexpr (is_field<T>) {
    each_leaf<typename T::value_type>(offset, name, is_secret<T>, see);
  } else if constexpr (is_leaf<T>()) {
    see.template operator()<T>(offset, name, secret);
  } else if constexpr (is_std_array<T>) {
    using V = typename T::value_type;
    for (std::uint32_t i = 0; i < std::tuple_size_v<T>; ++i)
      each_leaf<V>(offset + i * std::uint32_t{sizeof(V)}, name, secret, see);
  } else {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      std::uint32_t at = offset; // no padding: members follow one another
      ((each_leaf<reflect::member_type<T, I>>(at, reflect::member_name<T, I>(), secret, see),
        at += std::uint32_t{sizeof(reflect::member_type<T, I>)}),
       ...);
    }(std::make_index_sequence<reflect::count_members<T>()>{});
  }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo).
struct Fnv {
  std::uint64_t state = 14695981039346656037u;
  constexpr void add(std::string_view text) {
    for (const char c : text)
      state = (state ^ static_cast<unsigned char>(c)) * 1099511628211u;
    state = (state ^ 0xff) * 1099511628211u;
  }
  constexpr void add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i, number >>= 8)
      state = (state ^ (number & 0xff)) * 1099511628211u;
  }
};

template <class T>
constexpr char kind_of() {
  if (is_ptr<T>) return 'p';
  if (is_array<T>) return 'a';
  if (std::is_enum_v<T>) return 'e';
  if (std::is_same_v<T, bool>) return 'b';
  if (std::is_floating_point_v<T>) return 'f';
  return std::is_signed_v<T> ? 'i' : 'u';
}

template <class T>
struct target {
  using type = void;
};
template <class T, class P>
struct target<ptr<T, P>> {
  using type = T;
};
template <class T, class P>
struct target<array<T, P>> {
  using type = elements<T>;
};

template <class T>
consteval std::uint32_t size_of() {
  if constexpr (is_elements<T>)
    return sizeof(typename T::value_type);
  else
    return sizeof(T);
}

template <class... Ts>
consteval std::uint64_t hash_of(types<Ts...> all) {
  Fnv fnv;
  auto see = [&]<class Leaf>(std::uint32_t offset, std::string_view name, bool secret) {
    fnv.add(name);
    fnv.add(offset);
    fnv.add(std::uint64_t{static_cast<unsigned char>(kind_of<Leaf>())});
    fnv.add(sizeof(Leaf));
    fnv.add(std::uint64_t{secret});
    if constexpr (is_ptr<Leaf> || is_array<Leaf>)
      fnv.add(std::uint64_t{index_in<typename target<Leaf>::type>(all)});
  };
  ((fnv.add(std::uint64_t{size_of<Ts>()}), each_leaf<Ts>(0, "", false, see)), ...);
  return fnv.state;
}

/// The descriptors of all types, as they are stored.
template <std::size_t Types, std::size_t Links>
struct Described {
  std::array<TypeEntry, Types> types{};
  std::array<LinkEntry, Links> links{};
};

template <class... Ts>
consteval std::size_t count_links(types<Ts...>) {
  std::size_t count = 0;
  auto see = [&]<class Leaf>(std::uint32_t, std::string_view, bool) {
    count += is_ptr<Leaf> || is_array<Leaf>;
  };
  (each_leaf<Ts>(0, "", false, see), ...);
  return count;
}

template <class T>
constexpr void write_name(TypeEntry& entry) {
  std::string_view name = reflect::type_name<T>();
  name = name.substr(0, sizeof entry.name - 1);
  std::copy(name.begin(), name.end(), entry.name);
}

template <class... Ts>
consteval auto describe(types<Ts...> all) {
  Described<sizeof...(Ts), count_links(types<Ts...>{})> out;
  std::uint32_t type = 0;
  std::uint32_t link = 0;
  auto see = [&]<class Leaf>(std::uint32_t offset, std::string_view, bool secret) {
    if (secret) out.types[type].flags |= TypeEntry::secret;
    if constexpr (is_ptr<Leaf> || is_array<Leaf>)
      out.links[link++] = {offset, index_in<typename target<Leaf>::type>(all), is_array<Leaf>, 0};
  };
  const auto one = [&]<class T>() {
    TypeEntry& entry = out.types[type];
    write_name<T>(entry);
    entry.bytes = size_of<T>();
    entry.first_link = link;
    each_leaf<T>(0, "", false, see);
    entry.link_count = link - entry.first_link;
    ++type;
  };
  (one.template operator()<Ts>(), ...);
  return out;
}

template <class Pool>
inline constexpr auto described = describe(types_of<Pool>{});

/// A separate type, so that the compiler's message shows both numbers.
template <std::uint64_t of_the_types, std::uint64_t stated_last>
struct layout_is {
  static constexpr bool stated = of_the_types == stated_last;
};

} // namespace detail

/// The hash of the current layout of a pool type.
template <class Pool>
inline constexpr std::uint64_t layout_hash = detail::hash_of(detail::types_of<Pool>{});

/// The version of a pool type: the number of its layouts.
template <class Pool>
inline constexpr std::uint32_t layout_version = std::uint32_t{std::size(Pool::layouts)};

namespace detail {

template <class Pool>
consteval bool check_layout() {
  constexpr std::uint64_t last = Pool::layouts[std::size(Pool::layouts) - 1];
  static_assert(
      layout_is<layout_hash<Pool>, last>::stated || last != 0,
      "the layout of this pool's types is not stated: replace the 0 in `layouts` by the first "
      "number of layout_is<...>");
  static_assert(
      layout_is<layout_hash<Pool>, last>::stated || last == 0,
      "the layout of this pool's types is not the last one that the pool states: append the first "
      "number of layout_is<...> to `layouts`, which raises the version, or replace the last one "
      "if no pool was created with it");
  return true;
}

template <class Pool, class T>
consteval std::uint32_t type_index() {
  constexpr std::uint32_t index = index_in<T>(types_of<Pool>{});
  static_assert(
      index < std::tuple_size_v<decltype(described<Pool>.types)>,
      "the root of this pool does not reach the type: link it from a field, or it would leak");
  return index;
}

template <class Pool>
Schema schema_of() {
  return {described<Pool>.types, described<Pool>.links, layout_hash<Pool>};
}

} // namespace detail

} // namespace nearfar::persist
