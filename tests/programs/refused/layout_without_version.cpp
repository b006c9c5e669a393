// A layout that changed while its version did not.
// expected: the layout of this pool's types is not the last one that the pool states
// expected: layout_is<[0-9]+, 1>
#include "common.hpp"
struct pool_c {
  using root = root_a;
  static constexpr char name[] = "c";
  static constexpr std::uint64_t layouts[] = {1};
};
void f() { static_cast<void>(pool<pool_c>::open("x")); }
