#include "bench/intset.hpp"

#include <optional>
#include <utility>

#include "base/random.hpp"
#include "bench/pool_place.hpp"
#include "os/clock.hpp"
#include "structures/list.hpp"
#include "structures/map.hpp"
#include "structures/map_tx.hpp"
#include "structures/skip_list.hpp"

namespace nearfar::bench {

class IntsetSubject {
public:
  virtual ~IntsetSubject() = default;
  virtual Status fill(const std::vector<std::uint64_t>& keys) = 0;
  virtual Result<IntsetRun> run(const IntsetPlan& plan, std::uint64_t budget_ns,
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
Result<IntsetRun> operate(const IntsetPlan& plan, std::uint64_t budget_ns, Random& random,
                          const Operate& operate_one, const Size& size) {
  const std::uint64_t range = 2 * plan.entries;
  const std::uint64_t updates = (std::uint64_t{plan.update_percent} << 16) / 100;
  const std::uint64_t size_before = size();
  IntsetRun run;
  std::uint64_t inserted = 0;
  std::uint64_t removed = 0;
  std::uint64_t there = 0; // draws of keys that are in the set at first
  std::optional<Error> failure;
  const auto work = [&](std::size_t) {
    const storelog::Counters before = storelog::counters();
    const std::uint64_t start = os::now_ns();
    std::uint64_t now = start;
    for (; now - start < budget_ns && !failure; now = os::now_ns())
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
  Result<IntsetRun> run(const IntsetPlan& plan, std::uint64_t budget_ns, Random& random) override {
    const auto one = [&](std::uint64_t key, bool update, bool insertion) -> Result<bool> {
      if (!update) return set_->contains(key);
      return insertion ? Shape::insert(*set_, key) : set_->remove(key);
    };
    return operate(plan, budget_ns, random, one, [&] { return set_->size(); });
  }

private:
  Place place_;
  std::unique_ptr<typename Shape::Set> set_;
};

/// A hash set by libpmemobj's transactions.
class PmdkSet final : public IntsetSubject {
public:
  PmdkSet(persist::Pool pool, structures::MapTx map) : pool_(std::move(pool)), map_(map) {}
  Status fill(const std::vector<std::uint64_t>& keys) override {
    for (const std::uint64_t key : keys)
      if (Result<bool> done = map_.insert(key, {0, key}); !done) return done.error();
    return Done{};
  }
  Result<IntsetRun> run(const IntsetPlan& plan, std::uint64_t budget_ns, Random& random) override {
    const auto one = [&](std::uint64_t key, bool update, bool insertion) -> Result<bool> {
      if (!update) return map_.get(key).off != 0;
      if (insertion) return map_.insert(key, {0, key});
      Result<PMEMoid> gone = map_.remove(key);
      if (!gone) return gone.error();
      return gone->off != 0;
    };
    return operate(plan, budget_ns, random, one, [&] { return map_.size(); });
  }

private:
  persist::Pool pool_;
  structures::MapTx map_;
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

template <template <class> class Kind>
Result<std::unique_ptr<IntsetSubject>> make(const IntsetPlan& plan,
                                            const std::vector<std::uint64_t>& keys) {
  using Shape = Kind<structures::Pmem>;
  constexpr std::size_t root_bytes = sizeof(typename Shape::Root);
  if (plan.medium == IntsetMedium::dram) return filled<InDram, Kind>(InDram(root_bytes), keys);
  const std::size_t bytes = bytes_beside + plan.entries * Shape::bytes_an_entry;
  if (plan.medium == IntsetMedium::unflushed) {
    auto place = InPool<structures::Unflushed>::create(plan.tier, layout, bytes, root_bytes);
    if (!place) return place.error();
    return filled<InPool<structures::Unflushed>, Kind>(std::move(*place), keys);
  }
  auto place = InPool<structures::Pmem>::create(plan.tier, layout, bytes, root_bytes);
  if (!place) return place.error();
  return filled<InPool<structures::Pmem>, Kind>(std::move(*place), keys);
}

Result<std::unique_ptr<IntsetSubject>> make_pmdk(const IntsetPlan& plan,
                                                 const std::vector<std::uint64_t>& keys) {
  constexpr std::size_t bytes_an_entry = 448; // as in map_pmdk.cpp
  Result<persist::Pool> pool =
      make_pool(plan.tier, layout, bytes_beside + plan.entries * bytes_an_entry, sizeof(PMEMoid));
  if (!pool) return pool.error();
  Result<structures::MapTx> map =
      structures::MapTx::create(pool->handle(), reinterpret_cast<PMEMoid*>(pool->root()));
  if (!map) return map.error();
  auto set = std::make_unique<PmdkSet>(std::move(*pool), *map);
  if (Status full = set->fill(keys); !full) return full.error();
  return std::unique_ptr<IntsetSubject>(std::move(set));
}

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
  if (plan.medium == IntsetMedium::pmdk && plan.structure != IntsetStructure::hash)
    return Error::make(Errc::bad_input, "only the hash set has a version on libpmemobj alone")
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
    if (plan.medium == IntsetMedium::pmdk) return make_pmdk(plan, keys);
    switch (plan.structure) {
    case IntsetStructure::list: return make<ListSet>(plan, keys);
    case IntsetStructure::skip_list: return make<SkipListSet>(plan, keys);
    default: return make<HashSet>(plan, keys);
    }
  }();
  if (!subject) return subject.error();
  return IntsetBench(plan, std::move(*subject));
}

Result<IntsetRun> IntsetBench::run(std::uint64_t budget_ns) {
  Random random(plan_.seed++ + 0x5eed);
  return subject_->run(plan_, budget_ns, random);
}

} // namespace nearfar::bench
