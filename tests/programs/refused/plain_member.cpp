// A member that is not a field could be stored to without a log.
// expected: persistent: every member must be a field
#include "common.hpp"
struct loose {
  std::uint64_t key;
};
auto f(const ptr<loose, pool_a>& p) { return p->key; }
