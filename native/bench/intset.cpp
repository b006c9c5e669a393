#include "bench/intset.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/random.hpp"
#include "bench/pmdk_sorted.hpp"
#include "bench/pool_place.hpp"
#include "os/clock.hpp"
#include "structures/list.hpp"
#include "structures/map.hpp"
#include "structures/map_atomic.hpp"
#include "structures/map_rp.hpp"
#include "structures/map_tx.hpp"
#include "structures/skip_list.hpp"

namespace nearfar::bench {

/// A run ends with the time or with the operations, whichever is over first.
struct IntsetEnd {
  std::uint64_t budget_ns = ~std::uint64_t{0};
  std::uint64_t operations = ~std::uint64_t{0};
};

class IntsetSubject {
public:
  virtual ~IntsetSubject() = default;
  virtual Status fill(const std::vector<std::uint64_t>& keys) = 0;
  virtual std::span<const std::byte> pool() const = 0;
  virtual Result<IntsetRun> run(const IntsetPlan& plan, const IntsetEnd& until, RegionEdge edge,
                                Random& random) = 0;
};

namespace {

constexpr std::uint64_t operations_a_look = 32; // at the clock

/// How a set of each kind is filled, and how much room its entries want while it is used: half of
/// the operations meet free memory, so twice the entries is more than enough.
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
template <class Medium>
using ListSet = SortedSet<structures::List<Medium, std::uint64_t>>;
template <class Medium>
using SkipListSet = SortedSet<structures::SkipList<Medium, std::uint64_t>>;
template <class Medium>
struct HashSet {
  using Set = structures::Map<Medium, std::uint64_t, std::uint64_t>;
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

Error unsound() {
  return Error::make(Errc::failed_check, "the set does not hold what was put in and not taken out")
      .try_next("report this with the command you ran");
}

/// The timed loop, the same for every set. Size is checked before and after, untimed. What look-ups
/// found is told, or the compiler would leave them out; where nothing changes it is known.
template <class Operate, class Size>
Result<IntsetRun> operate(const IntsetPlan& plan, const IntsetEnd& until, RegionEdge edge,
                          Random& random, const Operate& operate_one, const Size& size) {
  const std::uint64_t range = 2 * plan.entries;
  const std::uint64_t updates = (std::uint64_t{plan.update_percent} << 16) / 100;
  const std::uint64_t size_before = size();
  IntsetRun run;
  std::uint64_t inserted = 0;
  std::uint64_t removed = 0;
  std::uint64_t there = 0; // draws of keys that are in the set at first
  std::optional<Error> failure;
  const auto work = [&](std::size_t) {
    if (Status ready = edge.prepare(); !ready) {
      failure = ready.error();
      return;
    }
    const storelog::Counters before = storelog::counters();
    edge.begin();
    const std::uint64_t start = os::now_ns();
    std::uint64_t now = start;
    for (; now - start < until.budget_ns && run.operations < until.operations && !failure;
         now = os::now_ns())
      for (std::uint64_t i = 0; i < operations_a_look; ++i) {
        const std::uint64_t draw = random.next(); // its upper part is the key, its lower the rest
        const std::uint64_t key = 1 + scaled(draw, range);
        const std::uint64_t chance = draw & 0xffff;
        const bool update = chance < updates;
        const bool insertion = chance < updates / 2;
        Result<bool> done = operate_one(key, update, insertion);
        if (!done) {
          failure = done.error();
          break;
        }
        inserted += insertion && *done;
        removed += update && !insertion && *done;
        run.found += !update && *done;
        there += key & 1;
        ++run.operations;
      }
    edge.end();
    run.seconds = static_cast<double>(now - start) * 1e-9;
    run.counted = storelog::counters() - before;
  };
  Result<kernels::TeamRun> team = kernels::run_team({&plan.cpu, 1}, work);
  if (!team) return team.error();
  if (failure) return *failure;
  if (size() != size_before + inserted - removed) return unsound();
  if (updates == 0 && run.found != there) return unsound();
  run.changed = inserted + removed;
  run.members = std::move(team->members);
  return run;
}

/// One of our structures on any medium.
template <class Place, template <class> class Kind>
class OurSet final : public IntsetSubject {
  using Shape = Kind<typename Place::Medium>;
  using Root = typename Shape::Root;

public:
  explicit OurSet(Place place) : place_(std::move(place)) {}
  Status open() {
    auto opened = Shape::Set::open(*place_.medium, *reinterpret_cast<Root*>(place_.root()));
    if (!opened) return opened.error();
    set_ = std::move(*opened);
    return Done{};
  }
  Status fill(const std::vector<std::uint64_t>& keys) override { return Shape::fill(*set_, keys); }
  std::span<const std::byte> pool() const override { return place_.memory(); }
  Result<IntsetRun> run(const IntsetPlan& plan, const IntsetEnd& until, RegionEdge edge,
                        Random& random) override {
    const auto one = [&](std::uint64_t key, bool update, bool insertion) -> Result<bool> {
      if (!update) return set_->contains(key);
      return insertion ? Shape::insert(*set_, key) : set_->remove(key);
    };
    return operate(plan, until, edge, random, one, [&] { return set_->size(); });
  }

private:
  Place place_;
  std::unique_ptr<typename Shape::Set> set_;
};

using PmdkPlace = InPool<structures::PoolObjects>;

/// A set on libpmemobj alone in a pool; one() does one operation.
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

constexpr persist::Layout layout{"nearfar bench intset", 1};
constexpr std::size_t bytes_beside = 24 << 20;

template <class Place, template <class> class Kind>
Result<std::unique_ptr<IntsetSubject>> filled(Place place, const std::vector<std::uint64_t>& keys) {
  auto set = std::make_unique<OurSet<Place, Kind>>(std::move(place));
  if (Status opened = set->open(); !opened) return opened.error();
  if (Status full = set->fill(keys); !full) return full.error();
  return std::unique_ptr<IntsetSubject>(std::move(set));
}

/// The twin of a pool in a node's memory lies there too, all others in DRAM.
tier::Spec twin_tier(const IntsetPlan& plan) {
  const bool there = plan.tier.kind == tier::Kind::numa || plan.tier.kind == tier::Kind::dram;
  return there ? plan.tier : tier::Spec{};
}

template <template <class> class Kind>
Result<std::unique_ptr<IntsetSubject>> make(const IntsetPlan& plan,
                                            const std::vector<std::uint64_t>& keys) {
  using Shape = Kind<structures::Pmem>;
  constexpr std::size_t root_bytes = sizeof(typename Shape::Root);
  const std::size_t bytes = bytes_beside + plan.entries * Shape::bytes_an_entry;
  if (plan.medium == IntsetMedium::dram) {
    Result<InDram> place = InDram::create(twin_tier(plan), bytes, root_bytes);
    if (!place) return place.error();
    return filled<InDram, Kind>(std::move(*place), keys);
  }
  if (plan.medium == IntsetMedium::unflushed) {
    auto place = InPool<structures::Unflushed>::create(plan.tier, layout, bytes, root_bytes);
    if (!place) return place.error();
    return filled<InPool<structures::Unflushed>, Kind>(std::move(*place), keys);
  }
  auto place = InPool<structures::Pmem>::create(plan.tier, layout, bytes, root_bytes);
  if (!place) return place.error();
  return filled<InPool<structures::Pmem>, Kind>(std::move(*place), keys);
}

/// Links of a tall node, and libpmemobj's own head and rounding.
constexpr std::size_t pmdk_bytes_an_entry = 448; // as in map_pmdk.cpp
constexpr unsigned skip_list_levels = 16;
using PmdkList = PmdkSorted<1>;
using PmdkSkipList = PmdkSorted<skip_list_levels>;

/// Makes the set by make(place) and fills it.
template <class Set, class Make>
Result<std::unique_ptr<IntsetSubject>> in_pmdk_pool(const IntsetPlan& plan, std::size_t root_bytes,
                                                    const std::vector<std::uint64_t>& keys,
                                                    const Make& make) {
  Result<PmdkPlace> place = PmdkPlace::create(
      plan.tier, layout, bytes_beside + plan.entries * pmdk_bytes_an_entry, root_bytes);
  if (!place) return place.error();
  Result<std::unique_ptr<Set>> set = make(*place);
  if (!set) return set.error();
  auto subject = std::make_unique<PmdkSet<Set>>(std::move(*place), std::move(*set));
  if (Status full = subject->fill(keys); !full) return full.error();
  return std::unique_ptr<IntsetSubject>(std::move(subject));
}

template <template <class> class Kind>
Result<std::unique_ptr<IntsetSubject>> pmdk_hash(const IntsetPlan& plan,
                                                 const std::vector<std::uint64_t>& keys) {
  using Map = Kind<structures::PoolObjects>;
  return in_pmdk_pool<Map>(plan, sizeof(PMEMoid), keys, [](PmdkPlace& place) {
    return Map::open(*place.medium, *reinterpret_cast<PMEMoid*>(place.root()));
  });
}

template <class Sorted>
Result<std::unique_ptr<IntsetSubject>> pmdk_sorted(const IntsetPlan& plan,
                                                   std::vector<std::uint64_t> keys) {
  using Root = typename Sorted::Root;
  std::ranges::sort(keys, std::greater<>()); // each at the front: filling a list takes no walk
  return in_pmdk_pool<Sorted>(plan, sizeof(Root), keys,
                              [](PmdkPlace& place) -> Result<std::unique_ptr<Sorted>> {
                                return std::make_unique<Sorted>(
                                    place.pool->handle(), reinterpret_cast<Root*>(place.root()));
                              });
}

Result<std::unique_ptr<IntsetSubject>> make_pmdk(const IntsetPlan& plan,
                                                 const std::vector<std::uint64_t>& keys) {
  if (plan.medium == IntsetMedium::pmdk_atomic) return pmdk_hash<structures::MapAtomic>(plan, keys);
  if (plan.medium == IntsetMedium::pmdk_rp) return pmdk_hash<structures::MapRp>(plan, keys);
  switch (plan.structure) {
  case IntsetStructure::list: return pmdk_sorted<PmdkList>(plan, keys);
  case IntsetStructure::skip_list: return pmdk_sorted<PmdkSkipList>(plan, keys);
  default: return pmdk_hash<structures::MapTx>(plan, keys);
  }
}

bool by_libpmemobj(IntsetMedium medium) { return medium >= IntsetMedium::pmdk; }

/// Every second key of the range in a random order.
std::vector<std::uint64_t> first_keys(const IntsetPlan& plan) {
  std::vector<std::uint64_t> keys(plan.entries);
  for (std::uint64_t i = 0; i < plan.entries; ++i)
    keys[i] = 1 + 2 * i;
  Random random(plan.seed);
  for (std::uint64_t i = plan.entries; i > 1; --i)
    std::swap(keys[i - 1], keys[random.below(i)]);
  return keys;
}

Status check(const IntsetPlan& plan) {
  if (plan.entries == 0 || plan.entries > (std::uint64_t{1} << 32))
    return Error::make(Errc::bad_input, "a set of %llu entries cannot be made",
                       static_cast<unsigned long long>(plan.entries))
        .try_next("give -n from 1 to 4294967296");
  if (plan.update_percent > 100)
    return Error::make(Errc::bad_input, "%u %% of updates are more than all operations",
                       plan.update_percent)
        .try_next("give --update from 0 to 100");
  if (plan.medium == IntsetMedium::dram)
    if (Status sound = check_twin(twin_tier(plan)); !sound) return sound;
  if (plan.medium > IntsetMedium::pmdk && plan.structure != IntsetStructure::hash)
    return Error::make(Errc::bad_input, "only the hash set has several versions on libpmemobj")
        .try_next("choose --structure hash");
  return Done{};
}

} // namespace

IntsetBench::IntsetBench(const IntsetPlan& plan, std::unique_ptr<IntsetSubject> subject)
    : plan_(plan), subject_(std::move(subject)) {}
IntsetBench::IntsetBench(IntsetBench&&) noexcept = default;
IntsetBench::~IntsetBench() = default;

Result<IntsetBench> IntsetBench::create(const IntsetPlan& plan) {
  if (Status sound = check(plan); !sound) return sound.error();
  const std::vector<std::uint64_t> keys = first_keys(plan);
  Result<std::unique_ptr<IntsetSubject>> subject = [&] {
    if (by_libpmemobj(plan.medium)) return make_pmdk(plan, keys);
    switch (plan.structure) {
    case IntsetStructure::list: return make<ListSet>(plan, keys);
    case IntsetStructure::skip_list: return make<SkipListSet>(plan, keys);
    default: return make<HashSet>(plan, keys);
    }
  }();
  if (!subject) return subject.error();
  return IntsetBench(plan, std::move(*subject));
}

std::span<const std::byte> IntsetBench::pool() const { return subject_->pool(); }

Result<IntsetRun> IntsetBench::run(std::uint64_t budget_ns, Region* region) {
  return run_until({.budget_ns = budget_ns}, region);
}

Result<IntsetRun> IntsetBench::run_operations(std::uint64_t operations, Region* region) {
  return run_until({.operations = operations}, region);
}

Result<IntsetRun> IntsetBench::run_until(const IntsetEnd& end, Region* region) {
  Random random(plan_.seed++ + 0x5eed);
  return subject_->run(plan_, end, {region, 0}, random);
}

} // namespace nearfar::bench
