// Children: every lock is taken before a fork, so that none is left taken in the child; what other
// threads had is taken over there; tiers in shared files become the child's own, or nobody's.
#pragma once

namespace nearfar::alloc {

/// Once.
void watch_forks();

} // namespace nearfar::alloc
