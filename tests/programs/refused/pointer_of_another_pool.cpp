// A pointer into one pool is none into another.
// expected: no match for .operator=.|no viable overloaded '='
#include "common.hpp"
void f(ptr<node, pool_a>& a, const ptr<node, pool_b>& b) { a = b; }
