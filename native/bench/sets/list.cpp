#include "structures/list.hpp"
#include "bench/sorted_shape.hpp"

namespace nearfar::bench {

namespace {

template <class PersistencePolicy>
using ListSet = SortedSet<structures::List<PersistencePolicy, std::uint64_t>>;

} // namespace

IntsetKind list_set() { return {"list", make_ours<ListSet>, pmdk_sorted<PmdkSorted<1>>}; }

} // namespace nearfar::bench
