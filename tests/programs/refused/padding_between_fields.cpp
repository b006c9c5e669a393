// The same between fields.
// expected: persistent: the type has padding
#include "common.hpp"
struct gap {
  field<char> small;
  field<std::uint64_t> large;
};
auto f(const ptr<gap, pool_a>& p) { return p->small.get(); }
