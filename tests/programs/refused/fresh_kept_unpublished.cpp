// Making and dropping what was made is an oversight.
// expected: (ignoring return value|ignoring returned value|nodiscard)
#include "common.hpp"
void f(tx<pool_a>& t) { t.make<node>(); }
