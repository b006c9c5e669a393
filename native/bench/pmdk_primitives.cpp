#include "bench/pmdk_primitives.hpp"

#include <algorithm>
#include <array>
#include <libpmemobj.h>
#include <optional>

#include "bench/pmem_counting.hpp"
#include "bench/pool_place.hpp"
#include "structures/objects.hpp"

namespace nearfar::bench {

namespace {

constexpr persist::Layout layout{"nearfar bench primitives", 1};
constexpr std::size_t pool_bytes = 64 << 20;
constexpr std::size_t object_bytes = 64;
constexpr std::uint64_t object_type = 2;
constexpr std::size_t lines = 8;

/// The root: words on lines of their own, and two handles.
struct Root {
  struct alignas(64) Line {
    std::uint64_t word;
  };
  std::array<Line, lines> line;
  PMEMoid object;
};

} // namespace

struct PrimitiveBench::State {
  persist::Pool pool;

  Root& root() { return *reinterpret_cast<Root*>(pool.root()); }
  PMEMobjpool* handle() { return pool.handle(); }

  bool once(Primitive primitive, std::uint64_t value) {
    switch (primitive) {
    case Primitive::persist: return persist_word(value);
    case Primitive::tx_1_range: return transact(value, 1, false);
    case Primitive::tx_8_ranges: return transact(value, lines, false);
    case Primitive::tx_alloc: return transact(value, 2, true);
    case Primitive::publish_1_word: return publish_word(value);
    case Primitive::alloc_publish: return alloc_publish(value);
    case Primitive::alloc_free: return alloc_free();
    }
    return false;
  }

  bool persist_word(std::uint64_t value) {
    root().line[0].word = value;
    pmemobj_persist(handle(), &root().line[0].word, sizeof value);
    return true;
  }

  bool transact(std::uint64_t value, std::size_t ranges, bool allocate) {
    bool done = pmemobj_tx_begin(handle(), nullptr, TX_PARAM_NONE) == 0;
    for (std::size_t i = 0; done && i < ranges; ++i) {
      std::uint64_t& word = root().line[i].word;
      done = pmemobj_tx_add_range_direct(&word, sizeof word) == 0;
      if (done) word = value;
    }
    if (done && allocate) {
      const PMEMoid made = pmemobj_tx_alloc(object_bytes, object_type);
      done = made.off != 0 && pmemobj_tx_add_range_direct(&root().object, sizeof made) == 0;
      if (done && root().object.off != 0) done = pmemobj_tx_free(root().object) == 0;
      if (done) *structures::direct<std::uint64_t>(root().object = made) = value;
    }
    if (done) pmemobj_tx_commit();
    return pmemobj_tx_end() == 0 && done;
  }

  bool publish_word(std::uint64_t value) {
    pobj_action action;
    pmemobj_set_value(handle(), &action, &root().line[0].word, value);
    return pmemobj_publish(handle(), &action, 1) == 0;
  }

  bool alloc_publish(std::uint64_t value) {
    std::array<pobj_action, 4> actions;
    std::size_t count = 0;
    const PMEMoid made = pmemobj_reserve(handle(), &actions[count++], object_bytes, object_type);
    if (made.off == 0) return false;
    auto* object = structures::direct<std::uint64_t>(made);
    *object = value;
    pmemobj_persist(handle(), object, sizeof value);
    if (root().object.off != 0) pmemobj_defer_free(handle(), root().object, &actions[count++]);
    pmemobj_set_value(handle(), &actions[count++], &root().object.pool_uuid_lo, made.pool_uuid_lo);
    pmemobj_set_value(handle(), &actions[count++], &root().object.off, made.off);
    return pmemobj_publish(handle(), actions.data(), count) == 0;
  }

  bool alloc_free() {
    if (root().object.off != 0) pmemobj_free(&root().object);
    if (pmemobj_alloc(handle(), &root().object, object_bytes, object_type, nullptr, nullptr) != 0)
      return false;
    pmemobj_free(&root().object);
    return true;
  }
};

PrimitiveBench::PrimitiveBench(std::unique_ptr<State> state, int cpu)
    : state_(std::move(state)), cpu_(cpu) {}
PrimitiveBench::PrimitiveBench(PrimitiveBench&&) noexcept = default;
PrimitiveBench::~PrimitiveBench() = default;

Result<PrimitiveBench> PrimitiveBench::create(const tier::Spec& tier, int cpu) {
  Result<persist::Pool> pool = make_pool(tier, layout, pool_bytes, sizeof(Root));
  if (!pool) return pool.error();
  if (!counts_pmem(pool->handle(), pool->root())) return uncounted();
  return PrimitiveBench(std::unique_ptr<State>(new State{std::move(*pool)}), cpu);
}

Result<PrimitiveRun> PrimitiveBench::run(Primitive primitive, std::uint64_t count) {
  PrimitiveRun run;
  std::optional<Error> failure;
  const auto work = [&](std::size_t) {
    const storelog::Counters before = storelog::counters();
    for (std::uint64_t i = 0; i < count; ++i)
      if (!state_->once(primitive, i + 1)) {
        failure = structures::pool_error("a primitive of libpmemobj");
        return;
      }
    run.counted = storelog::counters() - before;
  };
  Result<kernels::TeamRun> team = kernels::run_team({&cpu_, 1}, work);
  if (!team) return team.error();
  if (failure) return *failure;
  run.seconds = team->seconds();
  run.members = team->members;
  return run;
}

} // namespace nearfar::bench
