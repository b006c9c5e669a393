// A program cannot make a typed transaction without a guard.
// expected: (is private within this context|calling a private constructor)
#include "common.hpp"
void f(Transaction& transaction, root_a& root) { tx<pool_a> t(transaction, root); }
