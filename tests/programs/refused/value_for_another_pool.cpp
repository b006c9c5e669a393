// A transaction of one pool changes no pointers of another.
// expected: set: the value points into a pool of another type
#include "common.hpp"
void f(tx<pool_b>& t, root_a& root) { root.first.set(t, nullptr); }
