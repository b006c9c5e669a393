// Sets with correct use of libpmemobj's own transactions, for comparison.
#pragma once

#include <libpmemobj.h>
#include <optional>

#include "bench/intset_kind.hpp"
#include "structures/objects.hpp"

namespace nearfar::bench {

/// Links of a tall node, and libpmemobj's own head and rounding.
constexpr std::size_t pmdk_bytes_an_entry = 448; // as in map_pmdk.cpp

using PmdkPlace = InPool<structures::PoolObjects>;

/// A set in a pool that uses only libpmemobj.
template <class Set>
class PmdkSet final : public IntsetSubject {
public:
  PmdkSet(PmdkPlace place, std::unique_ptr<Set> set)
      : place_(std::move(place)), set_(std::move(set)) {}
  Status fill(const std::vector<std::uint64_t>& keys) override {
    for (const std::uint64_t key : keys)
      if (Result<bool> done = insert(key); !done) return done.error();
    return Done{};
  }
  std::span<const std::byte> pool() const override { return place_.memory(); }
  Result<IntsetRun> run(const IntsetPlan& plan, const IntsetEnd& until, RegionEdge edge,
                        Random& random) override {
    const auto one = [&](std::uint64_t key, bool update, bool insertion) -> Result<bool> {
      if (!update) return contains(key);
      return insertion ? insert(key) : remove(key);
    };
    return operate(plan, until, edge, random, one, [&] { return set_->size(); });
  }

private:
  static constexpr bool is_map = requires(Set& set) { set.get(0); };

  bool contains(std::uint64_t key) const {
    if constexpr (is_map)
      return set_->get(key).has_value();
    else
      return set_->contains(key);
  }
  Result<bool> insert(std::uint64_t key) {
    if constexpr (is_map)
      return set_->insert(key, {0, key});
    else
      return set_->insert(key);
  }
  Result<bool> remove(std::uint64_t key) {
    if constexpr (is_map) {
      Result<std::optional<PMEMoid>> gone = set_->remove(key);
      if (!gone) return gone.error();
      return gone->has_value();
    } else {
      return set_->remove(key);
    }
  }

  PmdkPlace place_; // outlives the set
  std::unique_ptr<Set> set_;
};

/// Makes the set by make(place) and fills it.
template <class Set, class Make>
Result<std::unique_ptr<IntsetSubject>> in_pmdk_pool(const IntsetPlan& plan, std::size_t root_bytes,
                                                    const std::vector<std::uint64_t>& keys,
                                                    const Make& make) {
  Result<PmdkPlace> place = PmdkPlace::create(
      plan.tier, intset_layout, overhead_bytes + plan.entries * pmdk_bytes_an_entry, root_bytes);
  if (!place) return place.error();
  Result<std::unique_ptr<Set>> set = make(*place);
  if (!set) return set.error();
  auto subject = std::make_unique<PmdkSet<Set>>(std::move(*place), std::move(*set));
  if (Status full = subject->fill(keys); !full) return full.error();
  return std::unique_ptr<IntsetSubject>(std::move(subject));
}

} // namespace nearfar::bench
