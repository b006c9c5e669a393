// Elements of an array are not logged, so they may not link objects.
// expected: array: elements are not logged, so they must not link objects
#include "common.hpp"
field<array<ptr<node, pool_a>, pool_a>> f;
