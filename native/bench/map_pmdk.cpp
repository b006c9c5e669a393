#include <mutex>

#include "bench/map_loops.hpp"
#include "bench/pmem_counting.hpp"
#include "bench/pool_place.hpp"
#include "structures/map_atomic.hpp"
#include "structures/map_rp.hpp"
#include "structures/map_tx.hpp"

namespace nearfar::bench {

namespace {

using structures::direct;

constexpr std::uint64_t value_type = 1; // pmembench's
constexpr persist::Layout layout{"nearfar bench map", 1};

/// Room for an entry and its share of buckets while they double: an entry of at most 128 bytes, two
/// arrays of 80-byte heads or 40-byte slots, a logged link each, and the allocator's own.
constexpr std::size_t bytes_an_entry = 448;
constexpr std::size_t bytes_beside = 16 << 20;

/// One of the three maps, its values, and pmembench's lock.
template <class Map>
class PmdkAdaptor {
public:
  PmdkAdaptor(const MapPlan& plan, persist::Pool pool, Map map)
      : pool_(std::move(pool)), map_(map), value_bytes_(plan.value_bytes), alloc_(plan.alloc),
        objects_(plan.alloc || plan.value_bytes > sizeof(std::uint64_t)) {}

  bool insert(std::uint64_t key) {
    const std::lock_guard turn(lock_);
    return objects_ ? insert_object(key) : took(map_.insert(key, {0, map_word(key)}));
  }

  std::uint64_t get(std::uint64_t key) {
    const std::lock_guard turn(lock_);
    const PMEMoid value = map_.get(key);
    if (!objects_) return value.off;
    if (value.off == 0) return 0;
    return alloc_ ? map_word(key) : read(value);
  }

  bool remove(std::uint64_t key) {
    const std::lock_guard turn(lock_);
    return objects_ ? remove_object(key) : took(map_.remove(key));
  }

  const Error* failure() const { return failure_ ? &*failure_ : nullptr; }
  std::span<const std::byte> pool() const { return {pool_.base(), pool_.bytes()}; }

private:
  /// Words of an object, the last one cut where the size is no multiple.
  std::size_t words() const { return value_bytes_ / sizeof(std::uint64_t); }

  std::uint64_t read(PMEMoid value) const {
    const auto* word = direct<const volatile std::uint64_t>(value);
    const std::uint64_t first = *word;
    for (std::size_t i = 1; i < words(); ++i)
      if (word[i] != first) return 0;
    return first;
  }

  bool insert_object(std::uint64_t key) {
    return transact([&] {
      const PMEMoid value = pmemobj_tx_alloc(value_bytes_, value_type);
      if (value.off == 0) return fail(structures::pool_error("allocating a value"));
      if (!alloc_)
        for (std::size_t i = 0; i < words(); ++i)
          direct<std::uint64_t>(value)[i] = map_word(key);
      return took(map_.insert(key, value));
    });
  }

  bool remove_object(std::uint64_t key) {
    return transact([&] {
      Result<PMEMoid> value = map_.remove(key);
      if (!value) return fail(value.error());
      return value->off != 0 && pmemobj_tx_free(*value) == 0;
    });
  }

  /// Runs body() in a transaction; false undoes it.
  template <class Body>
  bool transact(const Body& body) {
    if (pmemobj_tx_begin(pool_.handle(), nullptr, TX_PARAM_NONE) != 0)
      fail(structures::pool_error("beginning a transaction"));
    const bool done = pmemobj_tx_stage() == TX_STAGE_WORK && body();
    if (pmemobj_tx_stage() == TX_STAGE_WORK) {
      if (done)
        pmemobj_tx_commit();
      else
        pmemobj_tx_abort(ECANCELED);
    }
    return pmemobj_tx_end() == 0 && done;
  }

  bool fail(const Error& error) {
    if (!failure_) failure_ = error;
    return false;
  }
  bool took(Result<bool> fresh) { return fresh ? *fresh : fail(fresh.error()); }
  bool took(Result<PMEMoid> gone) { return gone ? gone->off != 0 : fail(gone.error()); }

  persist::Pool pool_;
  Map map_;
  std::mutex lock_;
  std::size_t value_bytes_;
  bool alloc_;
  bool objects_;
  std::optional<Error> failure_;
};

template <class Map>
Result<std::unique_ptr<MapSubject>> make(const MapPlan& plan) {
  const std::size_t value = plan.value_bytes > 8 || plan.alloc ? plan.value_bytes + 128 : 0;
  Result<persist::Pool> pool =
      make_pool(plan.tier, layout, bytes_beside + plan.operations * (bytes_an_entry + value),
                sizeof(PMEMoid));
  if (!pool) return pool.error();
  if (!counts_pmem(pool->handle(), pool->root())) return uncounted();
  Result<Map> map = Map::create(pool->handle(), reinterpret_cast<PMEMoid*>(pool->root()));
  if (!map) return map.error();
  auto adaptor = std::make_unique<PmdkAdaptor<Map>>(plan, std::move(*pool), *map);
  return std::unique_ptr<MapSubject>(
      std::make_unique<MapLoops<PmdkAdaptor<Map>>>(std::move(adaptor)));
}

} // namespace

Result<std::unique_ptr<MapSubject>> pmdk_map(const MapPlan& plan) {
  switch (plan.type) {
  case MapType::map_atomic: return make<structures::MapAtomic>(plan);
  case MapType::map_tx: return make<structures::MapTx>(plan);
  default: return make<structures::MapRp>(plan);
  }
}

} // namespace nearfar::bench
