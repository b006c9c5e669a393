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
using structures::DramObjects;
using structures::PoolObjects;

constexpr std::uint64_t value_type = 1; // pmembench's
constexpr persist::Layout layout{"nearfar bench map", 1};

/// Memory for an entry and its buckets while they double: an entry of at most 128 bytes, two arrays
/// of 80-byte heads or 40-byte slots, a logged link each, and the allocator's overhead.
constexpr std::size_t bytes_an_entry = 448;
constexpr std::size_t overhead_bytes = 16 << 20;

/// The volatile counterparts' place: objects in DRAM, and the map's handle.
struct InDramObjects {
  using PersistencePolicy = DramObjects;
  std::unique_ptr<PersistencePolicy> medium = std::make_unique<PersistencePolicy>();
  std::unique_ptr<PMEMoid> handle = std::make_unique<PMEMoid>(OID_NULL);

  void* root() const { return handle.get(); }
  std::span<const std::byte> memory() const { return {}; }
};

/// One of the three maps, its values words in their handles.
template <class Place, class Map>
class WordAdaptor {
public:
  WordAdaptor(Place place, std::unique_ptr<Map> map)
      : place_(std::move(place)), map_(std::move(map)) {}

  bool insert(std::uint64_t key) { return first_.took(map_->insert(key, {0, map_word(key)})); }
  std::uint64_t get(std::uint64_t key) { return map_->get(key).value_or(OID_NULL).off; }
  bool remove(std::uint64_t key) {
    Result<std::optional<PMEMoid>> gone = map_->remove(key);
    return gone ? gone->has_value() : first_.fail(gone.error());
  }
  const Error* failure() const { return first_.get(); }
  std::span<const std::byte> pool() const { return place_.memory(); }

private:
  Place place_; // outlives the map
  std::unique_ptr<Map> map_;
  FirstFailure first_;
};

/// One of the three maps, its values objects of their own. Threads exclude each other, as in
/// pmembench, because they must not see changes that are undone.
template <class Map>
class ObjectAdaptor {
public:
  using Place = InPool<PoolObjects>;

  ObjectAdaptor(const MapPlan& plan, Place place, std::unique_ptr<Map> map)
      : place_(std::move(place)), map_(std::move(map)), value_bytes_(plan.value_bytes),
        alloc_(plan.alloc) {}

  bool insert(std::uint64_t key) {
    const std::lock_guard turn(lock_);
    return transact([&] {
      const PMEMoid value = pmemobj_tx_alloc(value_bytes_, value_type);
      if (value.off == 0) return first_.fail(structures::pool_error("allocating a value"));
      if (!alloc_)
        for (std::size_t i = 0; i < words(); ++i)
          direct<std::uint64_t>(value)[i] = map_word(key);
      return first_.took(map_->insert(key, value));
    });
  }
  std::uint64_t get(std::uint64_t key) {
    const std::lock_guard turn(lock_);
    const std::optional<PMEMoid> value = map_->get(key);
    if (!value) return 0;
    return alloc_ ? map_word(key) : read(*value);
  }
  bool remove(std::uint64_t key) {
    const std::lock_guard turn(lock_);
    return transact([&] {
      Result<std::optional<PMEMoid>> value = map_->remove(key);
      if (!value) return first_.fail(value.error());
      return value->has_value() && pmemobj_tx_free(**value) == 0;
    });
  }
  const Error* failure() const { return first_.get(); }
  std::span<const std::byte> pool() const { return place_.memory(); }

private:
  /// Words of an object, the last one partial if the size is not a multiple of the word.
  std::size_t words() const { return value_bytes_ / sizeof(std::uint64_t); }

  std::uint64_t read(PMEMoid value) const {
    const auto* word = direct<const volatile std::uint64_t>(value);
    const std::uint64_t first = *word;
    for (std::size_t i = 1; i < words(); ++i)
      if (word[i] != first) return 0;
    return first;
  }

  /// Runs body() in a transaction; false undoes it.
  template <class Body>
  bool transact(const Body& body) {
    if (pmemobj_tx_begin(place_.pool->handle(), nullptr, TX_PARAM_NONE) != 0)
      first_.fail(structures::pool_error("beginning a transaction"));
    const bool done = pmemobj_tx_stage() == TX_STAGE_WORK && body();
    if (pmemobj_tx_stage() == TX_STAGE_WORK) {
      if (done)
        pmemobj_tx_commit();
      else
        pmemobj_tx_abort(ECANCELED);
    }
    return pmemobj_tx_end() == 0 && done;
  }

  Place place_; // outlives the map
  std::unique_ptr<Map> map_;
  std::mutex lock_;
  std::size_t value_bytes_;
  bool alloc_;
  FirstFailure first_;
};

template <class Adaptor>
std::unique_ptr<MapSubject> looped(std::unique_ptr<Adaptor> adaptor) {
  return std::make_unique<MapLoops<Adaptor>>(std::move(adaptor));
}

template <class Map, class Place>
Result<std::unique_ptr<Map>> open(Place& place) {
  return Map::open(*place.medium, *reinterpret_cast<PMEMoid*>(place.root()));
}

template <template <class> class Kind>
Result<std::unique_ptr<MapSubject>> make_twin(const MapPlan& plan) {
  if (!plan.words())
    return Error::make(Errc::bad_input, "the counterparts in DRAM keep values of 8 bytes at most")
        .try_next("give -d 8 without --alloc, or a tier that holds a pool");
  using Map = Kind<DramObjects>;
  InDramObjects place;
  Result<std::unique_ptr<Map>> map = open<Map>(place);
  if (!map) return map.error();
  return looped(
      std::make_unique<WordAdaptor<InDramObjects, Map>>(std::move(place), std::move(*map)));
}

template <template <class> class Kind>
Result<std::unique_ptr<MapSubject>> make(const MapPlan& plan) {
  if (plan.in_dram()) return make_twin<Kind>(plan);
  using Map = Kind<PoolObjects>;
  using Place = InPool<PoolObjects>;
  const bool objects = !plan.words();
  const std::size_t value = objects ? plan.value_bytes + 128 : 0;
  Result<Place> place =
      Place::create(plan.tier, layout, overhead_bytes + plan.operations * (bytes_an_entry + value),
                    sizeof(PMEMoid));
  if (!place) return place.error();
  if (!counts_pmem(place->pool->handle(), place->root())) return uncounted();
  Result<std::unique_ptr<Map>> map = open<Map>(*place);
  if (!map) return map.error();
  if (objects)
    return looped(std::make_unique<ObjectAdaptor<Map>>(plan, std::move(*place), std::move(*map)));
  return looped(std::make_unique<WordAdaptor<Place, Map>>(std::move(*place), std::move(*map)));
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
