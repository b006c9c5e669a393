// The common part of the sorted list and the skip list under `bench intset`.
#pragma once

#include <algorithm>
#include <functional>

#include "bench/pmdk_set.hpp"
#include "bench/pmdk_sorted.hpp"
#include "structures/chain.hpp"

namespace nearfar::bench {

template <class Sorted>
struct SortedSet {
  using Set = Sorted;
  using Root = structures::ChainRoot;
  static constexpr std::size_t bytes_an_entry = 128;
  static Status fill(Set& set, const std::vector<std::uint64_t>& keys) {
    return set.bulk_load(keys);
  }
  static Result<bool> insert(Set& set, std::uint64_t key) { return set.insert(key); }
};

template <class Sorted>
Result<std::unique_ptr<IntsetSubject>> pmdk_sorted(const IntsetPlan& plan, const Keys& given) {
  using Root = typename Sorted::Root;
  Keys keys = given;
  std::ranges::sort(keys, std::greater<>()); // each at the front: filling a list takes no walk
  return in_pmdk_pool<Sorted>(plan, sizeof(Root), keys,
                              [](PmdkPlace& place) -> Result<std::unique_ptr<Sorted>> {
                                return std::make_unique<Sorted>(
                                    place.pool->handle(), reinterpret_cast<Root*>(place.root()));
                              });
}

} // namespace nearfar::bench
