// A kind of set for `bench intset`: one file in sets/ for each, found by CMake. The file has a
// function NAME_set() that returns its name and factories, and no other file lists it.
//
//     IntsetKind list_set() { return {"list", make_ours<ListSet>}; }
//
// The kind is a template over the medium (structures/persistence_policy.hpp) with
//     Set, made by Set::open(medium, root) and with contains(key), remove(key), size();
//     Root, its data at the pool's root, all zero at first;
//     bytes_an_entry, the memory per entry while the set is used: because half of the operations
//     find free memory, twice the entries is sufficient;
//     fill(set, keys) and insert(set, key). If the set allocates from the pool after fill(), the
//     pool flushes within the timed loop, also on the unflushed medium.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "base/random.hpp"
#include "bench/intset.hpp"
#include "bench/pool_place.hpp"
#include "os/clock.hpp"

namespace nearfar::bench {

/// A run ends after this time or after these operations, whichever is first.
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

using Keys = std::vector<std::uint64_t>;
using MakeSet = Result<std::unique_ptr<IntsetSubject>> (*)(const IntsetPlan&, const Keys&);

struct IntsetKind {
  const char* name;
  MakeSet ours;                  ///< pmem, unflushed, dram
  MakeSet pmdk = nullptr;        ///< where there is a version on libpmemobj
  MakeSet pmdk_atomic = nullptr; ///< where there are several
  MakeSet pmdk_rp = nullptr;
};

#define NEARFAR_SET(name) IntsetKind name##_set();
#include "bench/sets.inc"
#undef NEARFAR_SET

/// Error: the set does not have exactly the keys that were inserted and not removed.
Error inconsistent_set();

constexpr std::size_t overhead_bytes = 24 << 20; ///< of a pool, in addition to the entries
constexpr persist::Layout intset_layout{"nearfar bench intset", 1};

/// The counterpart of a pool in a node's memory lies there too, all others in DRAM.
tier::Spec counterpart_tier(const IntsetPlan& plan);

constexpr std::uint64_t operations_a_look = 32; // at the clock

/// The timed loop, the same for every set. Size is checked before and after, untimed. The number of
/// successful look-ups is returned, so that the compiler keeps them; without updates it is known.
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
         now = os::now_ns()) {
      const std::uint64_t few = std::min(operations_a_look, until.operations - run.operations);
      for (std::uint64_t i = 0; i < few; ++i) {
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
    }
    edge.end();
    run.seconds = static_cast<double>(now - start) * 1e-9;
    run.counted = storelog::counters() - before;
  };
  Result<kernels::TeamRun> team = kernels::run_team({&plan.cpu, 1}, work);
  if (!team) return team.error();
  if (failure) return *failure;
  if (size() != size_before + inserted - removed) return inconsistent_set();
  if (updates == 0 && run.found != there) return inconsistent_set();
  run.changed = inserted + removed;
  run.members = std::move(team->members);
  return run;
}

/// One of nearfar's structures on any medium.
template <class Place, template <class> class Kind>
class OurSet final : public IntsetSubject {
  using Shape = Kind<typename Place::PersistencePolicy>;
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

template <class Place, template <class> class Kind>
Result<std::unique_ptr<IntsetSubject>> filled(Place place, const std::vector<std::uint64_t>& keys) {
  auto set = std::make_unique<OurSet<Place, Kind>>(std::move(place));
  if (Status opened = set->open(); !opened) return opened.error();
  if (Status full = set->fill(keys); !full) return full.error();
  return std::unique_ptr<IntsetSubject>(std::move(set));
}

template <template <class> class Kind>
Result<std::unique_ptr<IntsetSubject>> make_ours(const IntsetPlan& plan, const Keys& keys) {
  using Shape = Kind<structures::Pmem>;
  constexpr std::size_t root_bytes = sizeof(typename Shape::Root);
  const std::size_t bytes = overhead_bytes + plan.entries * Shape::bytes_an_entry;
  if (plan.medium == IntsetMedium::dram) {
    Result<InDram> place = InDram::create(counterpart_tier(plan), bytes, root_bytes);
    if (!place) return place.error();
    return filled<InDram, Kind>(std::move(*place), keys);
  }
  if (plan.medium == IntsetMedium::unflushed) {
    auto place = InPool<structures::Unflushed>::create(plan.tier, intset_layout, bytes, root_bytes);
    if (!place) return place.error();
    return filled<InPool<structures::Unflushed>, Kind>(std::move(*place), keys);
  }
  auto place = InPool<structures::Pmem>::create(plan.tier, intset_layout, bytes, root_bytes);
  if (!place) return place.error();
  return filled<InPool<structures::Pmem>, Kind>(std::move(*place), keys);
}

} // namespace nearfar::bench
