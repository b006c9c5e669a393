// A write needs the transaction, which holds the guard.
// expected: (use of deleted function|call to deleted member function 'set')
// expected: needs the transaction: set\(tx, value\)
#include "common.hpp"
void f(node& n) { n.key.set(5); }
