// New memory has one owner until it is linked.
// expected: (use of deleted function|call to deleted constructor)
// expected: one owner: publish\(field, std::move\(fresh\)\) hands it on
#include "common.hpp"
void f(tx<pool_a>& t) {
  auto made = t.make<node>();
  auto copy = made;
}
