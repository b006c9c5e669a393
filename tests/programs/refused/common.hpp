// Two pools that the refused programs misuse. On its own this compiles.
#ifndef REFUSED_COMMON // no pragma once: it is read compiled, from elsewhere
#define REFUSED_COMMON
#include <nearfar/persist.hpp>
#include <utility>

using namespace nearfar::persist;

struct pool_a;
struct pool_b;
template <class Pool>
struct node_of {
  field<std::uint64_t> key;
  field<ptr<node_of, Pool>> next;
};
struct vault {
  secret_field<std::uint64_t> secret;
};
using node = node_of<pool_a>;
struct root_a {
  field<ptr<node, pool_a>> first;
  field<ptr<vault, pool_a>> safe;
};
struct root_b {
  field<ptr<node_of<pool_b>, pool_b>> first;
};
struct pool_a {
  using root = root_a;
  static constexpr char name[] = "a";
  static constexpr std::uint64_t layouts[] = {6152573165192406576u};
};
struct pool_b {
  using root = root_b;
  static constexpr char name[] = "b";
  static constexpr std::uint64_t layouts[] = {5767105102746348217u};
};

#endif
