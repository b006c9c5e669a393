// What the root cannot reach would be a leak from its first day.
// expected: the root of this pool does not reach the type: link it from a field, or it would leak
#include "common.hpp"
struct stray {
  field<std::uint64_t> word;
};
void f(tx<pool_a>& t) { auto made = t.make<stray>(); }
