// A plain pointer into a field would let stores by.
// expected: (use of deleted function|overload resolution selected deleted operator '&')
// expected: a plain pointer would let stores escape the log
#include "common.hpp"
auto f(node& n) { return &n.key; }
