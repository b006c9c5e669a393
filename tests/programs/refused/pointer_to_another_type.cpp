// A pointer is typed and has no cast.
// expected: invalid .static_cast.|no matching (function for call|conversion for static_cast)
#include "common.hpp"
ptr<vault, pool_a> f(const ptr<node, pool_a>& p) { return static_cast<ptr<vault, pool_a>>(p); }
