#include "bench/pmdk_set.hpp"
#include "structures/map.hpp"
#include "structures/map_atomic.hpp"
#include "structures/map_rp.hpp"
#include "structures/map_tx.hpp"

namespace nearfar::bench {

namespace {

template <class PersistencePolicy>
struct HashSet {
  using Set = structures::Map<PersistencePolicy, std::uint64_t, std::uint64_t>;
  using Root = structures::MapRoot;
  static constexpr std::size_t bytes_an_entry = 128;
  static Status fill(Set& set, const std::vector<std::uint64_t>& keys) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs;
    pairs.reserve(keys.size());
    for (const std::uint64_t key : keys)
      pairs.emplace_back(key, key);
    return set.bulk_load(pairs);
  }
  static Result<bool> insert(Set& set, std::uint64_t key) { return set.insert(key, key); }
};

template <template <class> class Kind>
Result<std::unique_ptr<IntsetSubject>> pmdk_hash(const IntsetPlan& plan,
                                                 const std::vector<std::uint64_t>& keys) {
  using Map = Kind<structures::PoolObjects>;
  return in_pmdk_pool<Map>(plan, sizeof(PMEMoid), keys, [](PmdkPlace& place) {
    return Map::open(*place.medium, *reinterpret_cast<PMEMoid*>(place.root()));
  });
}

} // namespace

IntsetKind hash_set() {
  return {"hash", make_ours<HashSet>, pmdk_hash<structures::MapTx>,
          pmdk_hash<structures::MapAtomic>, pmdk_hash<structures::MapRp>};
}

} // namespace nearfar::bench
