// An allocation and its link belong together: publish() does both.
// expected: no match(ing member function|ing function|  *for)
#include "common.hpp"
void f(tx<pool_a>& t, node& n) { n.next.set(t, t.make<node>()); }
