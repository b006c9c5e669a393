// A reading shares its guard with others, and may not write.
// expected: (use of deleted function|call to deleted member function 'set')
// expected: readings share: begin a transaction
#include "common.hpp"
void f(const reader<pool_a>& r, node& n) { n.key.set(r, 5); }
