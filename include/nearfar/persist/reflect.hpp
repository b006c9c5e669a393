// Members of an aggregate, without macros: their number, types and names.
//
// Purpose        the layout hash, the type descriptors, and the check that every member is a field.
// Method         structured bindings decompose aggregates of up to 16 members; a name is parsed
//                from the compiler's text for the address of a member (GCC 12+, clang 14+).
// Limits         no base classes, no C arrays (use std::array), no bit fields.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace nearfar::persist::reflect {

struct anything {
  template <class T>
  constexpr operator T() const;
};

inline constexpr std::size_t max_members = 16;

template <class T, std::size_t... I>
consteval bool takes(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), anything{})...}; };
}

/// Returns the number of members of an aggregate; max_members + 1 if more.
template <class T, std::size_t N = max_members + 1>
consteval std::size_t count_members() {
  if constexpr (N == 0)
    return 0;
  else if constexpr (takes<T>(std::make_index_sequence<N>{}))
    return N;
  else
    return count_members<T, N - 1>();
}

template <class... M>
constexpr auto addresses(M&... members) {
  return std::tuple<M*...>(std::addressof(members)...);
}

/// Pointers to all members, as a tuple.
template <class T>
constexpr auto members_of(T& object) {
  constexpr std::size_t n = count_members<std::remove_const_t<T>>();
  static_assert(n <= max_members, "a persistent type has at most 16 members: nest some of them");
  // clang-format off
  if constexpr (n == 0) return std::tuple<>();
  else if constexpr (n == 1) { auto& [a] = object; return addresses(a); }
  else if constexpr (n == 2) { auto& [a, b] = object; return addresses(a, b); }
  else if constexpr (n == 3) { auto& [a, b, c] = object; return addresses(a, b, c); }
  else if constexpr (n == 4) { auto& [a, b, c, d] = object; return addresses(a, b, c, d); }
  else if constexpr (n == 5) { auto& [a, b, c, d, e] = object; return addresses(a, b, c, d, e); }
  else if constexpr (n == 6) { auto& [a, b, c, d, e, f] = object; return addresses(a, b, c, d, e, f); }
  else if constexpr (n == 7) { auto& [a, b, c, d, e, f, g] = object; return addresses(a, b, c, d, e, f, g); }
  else if constexpr (n == 8) { auto& [a, b, c, d, e, f, g, h] = object; return addresses(a, b, c, d, e, f, g, h); }
  else if constexpr (n == 9) { auto& [a, b, c, d, e, f, g, h, i] = object; return addresses(a, b, c, d, e, f, g, h, i); }
  else if constexpr (n == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = object; return addresses(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (n == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = object; return addresses(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (n == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object; return addresses(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (n == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = object; return addresses(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (n == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = object; return addresses(a, b, c, d, e, f, g, h, i, j, k, l, m, o); }
  else if constexpr (n == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = object; return addresses(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p); }
  else { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = object; return addresses(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q); }
  // clang-format on
}

template <class T>
using member_tuple = decltype(members_of(std::declval<T&>()));
template <class T, std::size_t I>
using member_type = std::remove_pointer_t<std::tuple_element_t<I, member_tuple<T>>>;

template <class T>
struct nearfar_shell {
  T nearfar_inside;
};
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class T>
extern const nearfar_shell<T> phantom; // never defined: only the addresses of its members are named

template <class P>
struct named {
  P pointer;
};
template <class P>
named(P) -> named<P>;

template <auto pointer>
consteval std::string_view words() {
  return __PRETTY_FUNCTION__;
}

/// The name of member I.
template <class T, std::size_t I>
consteval std::string_view member_name() {
  std::string_view text = words<named{std::get<I>(members_of(phantom<T>.nearfar_inside))}>();
  constexpr std::string_view mark = "nearfar_inside.";
  text.remove_prefix(text.find(mark) + mark.size());
  std::size_t first = 0; // gcc says Type::name, with <> of templates or {} of namespaces in Type
  std::size_t at = 0;
  for (int depth = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (depth == 0 && (c == ')' || c == '}' || c == ']')) break;
    if (c == '<' || c == '{') ++depth;
    if (c == '>' || c == '}') --depth;
    if (depth == 0 && c == ':') first = at + 1;
  }
  return text.substr(first, at - first);
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

template <class T>
consteval std::string_view type_words() {
  return __PRETTY_FUNCTION__;
}

/// The name of a type as the compiler writes it, for messages.
template <class T>
consteval std::string_view type_name() {
  constexpr std::string_view mark = "T = ";
  std::string_view text = type_words<T>();
  text.remove_prefix(text.find(mark) + mark.size());
  return text.substr(0, text.find_first_of(";]"));
}

} // namespace nearfar::persist::reflect
