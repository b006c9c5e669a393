#include "structures/skip_list.hpp"

#include "bench/sorted_shape.hpp"

namespace nearfar::bench {

namespace {

constexpr unsigned levels = 16;

template <class PersistencePolicy>
using SkipListSet = SortedSet<structures::SkipList<PersistencePolicy, std::uint64_t>>;

} // namespace

IntsetKind skip_list_set() {
  return {"skip_list", make_ours<SkipListSet>, pmdk_sorted<PmdkSorted<levels>>};
}

} // namespace nearfar::bench
