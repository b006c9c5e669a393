// Nobody can make a transaction that holds no guard.
// expected: (is private within this context|calling a private constructor)
#include "common.hpp"
void f(Session& session, root_a& root) { tx<pool_a> t(session, root); }
