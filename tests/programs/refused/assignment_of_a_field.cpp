// The same from one field to another.
// expected: (use of deleted function|overload resolution selected deleted operator '=')
#include "common.hpp"
void f(node& n, node& m) { n.key = m.key; }
