// The forgotten snapshot: a plain store would reach memory without the log.
// expected: (use of deleted function|overload resolution selected deleted operator '=')
// expected: write it with set\(tx, value\)
#include "common.hpp"
void f(node& n) { n.key = 5; }
