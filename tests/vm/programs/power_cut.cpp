// The load of the power-cut test: map, list and skip list in one pool, by two threads.
//
//   power_cut run POOL LOG SEED nothing|flushes|fence [creation|growth|recovery FENCE]
//                            until the power goes; makes POOL if absent. With a phase, a thread
//                            stops for ever before that fence of the phase
//   power_cut fences POOL    makes POOL, works for a while, opens it again; prints how many fences
//                            each phase has, and growth in its first operations
//   power_cut check POOL     verifies, and prints what is there
//
// `nothing` is taken out in the test; its controls take away all that the structures themselves
// flush (`flushes`), or one line's fence: that before the first acknowledgement (`fence`).
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>

#include "base/random.hpp"
#include "cut_log.hpp"
#include "structures/list.hpp"
#include "structures/map.hpp"
#include "structures/skip_list.hpp"

using namespace nearfar;
using namespace nearfar::structures;

namespace {

using Number = std::uint64_t;

struct alignas(64) Root {
  alignas(64) MapRoot map;
  alignas(64) ChainRoot list;
  alignas(64) ChainRoot skip_list;
};

constexpr persist::Layout layout{"power-cut", 1};
constexpr std::size_t pool_bytes = 64 << 20;
constexpr Number keys[] = {20000, 400, 2000};

template <class T>
T need(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().what);
  std::_Exit(1);
}

/// Reports the allocation of a chunk as growth; while a pool is created or recovered it is part of
/// that.
class Growing final : public persist::StorageAllocator {
public:
  explicit Growing(persist::Pool& pool) : source_(pool) {}
  Status allocate(std::uint64_t* link, std::size_t bytes, std::uint64_t type,
                  bool zeroed) override {
    if (!working) return source_.allocate(link, bytes, type, zeroed);
    const cut::During during(cut::Phase::growth);
    return source_.allocate(link, bytes, type, zeroed);
  }
  Status release(std::uint64_t* link) override { return source_.release(link); }

  static inline bool working = false;

private:
  persist::PoolStorage source_;
};

struct Tested {
  explicit Tested(persist::Pool& pool)
      : medium(pool.base(), pool.durability(), std::make_unique<Growing>(pool)),
        root(*reinterpret_cast<Root*>(pool.root())),
        map(need(Map<Pmem, Number, Number>::open(medium, root.map))),
        list(need(List<Pmem, Number>::open(medium, root.list))),
        skip_list(need(SkipList<Pmem, Number>::open(medium, root.skip_list))) {}

  bool apply(Number structure, bool remove, Number key, Number value) {
    if (structure == 0) return need(remove ? map->remove(key) : map->put(key, value));
    if (structure == 1) return need(remove ? list->remove(key) : list->insert(key));
    return need(remove ? skip_list->remove(key) : skip_list->insert(key));
  }

  Pmem medium;
  Root& root;
  std::unique_ptr<Map<Pmem, Number, Number>> map;
  std::unique_ptr<List<Pmem, Number>> list;
  std::unique_ptr<SkipList<Pmem, Number>> skip_list;
};

/// Each thread has keys of its own, so that the order of its operations is the order of a key's.
void work(Tested& tested, Number thread, Number seed, Number steps) {
  cut::stream_this_thread(thread);
  Random random(seed * 2 + thread);
  for (Number step = 0; step < steps; ++step) {
    const Number structure = step % 3;
    const Number key = random.below(keys[structure] / 2) * 2 + thread;
    const bool remove = random.below(100) < 35;
    const Number value = random.next();
    cut::begin(thread, structure, remove ? 1 : 0, key, value);
    cut::acknowledge(thread, tested.apply(structure, remove, key, value) ? 1 : 0);
  }
}

void work_both(Tested& tested, Number seed, Number steps) {
  std::thread other([&] { work(tested, 1, seed, steps); });
  work(tested, 0, seed, steps);
  other.join();
}

tier::Spec place_of(const char* path) {
  return need(tier::parse((std::string("fsdax:") + path).c_str()));
}

/// A pool and what is in it; their making is a phase.
struct Opened {
  persist::Pool pool;
  Tested tested;

  explicit Opened(const char* path)
      : Opened(path,
               cut::During(access(path, F_OK) == 0 ? cut::Phase::recovery : cut::Phase::creation)) {
  }

private:
  Opened(const char* path, const cut::During&)
      : pool(access(path, F_OK) == 0
                 ? need(persist::Pool::open(place_of(path), layout))
                 : need(persist::Pool::create(place_of(path), layout,
                                              {pool_bytes, sizeof(Root), false}))),
        tested(pool) {}
};

cut::Phase phase_of(const std::string& name) {
  return name == "creation"   ? cut::Phase::creation
         : name == "growth"   ? cut::Phase::growth
         : name == "recovery" ? cut::Phase::recovery
                              : cut::Phase::none;
}

int run(const char* path, const char* log, const char* seed, const std::string& without) {
  const int port = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (port < 0) return std::perror(log), 1;
  const auto what = without == "flushes" ? cut::Without::flushes
                    : without == "fence" ? cut::Without::fence
                                         : cut::Without::nothing;
  cut::stream_to(port, path, what);
  cut::stream_this_thread(0);
  Opened opened(path);
  Growing::working = true;
  work_both(opened.tested, std::strtoull(seed, nullptr, 10), UINT64_MAX);
  return 0;
}

int count_fences(const char* path) {
  cut::stream_to(open("/dev/null", O_WRONLY), path, cut::Without::nothing);
  cut::stream_this_thread(0);
  {
    Opened made(path);
    Growing::working = true;
    work_both(made.tested, 1, 150);
    std::printf("first_growth %" PRIu64 "\n", cut::fences_in(cut::Phase::growth));
    work_both(made.tested, 2, 8000);
    Growing::working = false;
  }
  const Opened again(path);
  std::printf("creation %" PRIu64 "\ngrowth %" PRIu64 "\nrecovery %" PRIu64 "\n",
              cut::fences_in(cut::Phase::creation), cut::fences_in(cut::Phase::growth),
              cut::fences_in(cut::Phase::recovery));
  return 0;
}

int check(const char* path) {
  persist::Pool pool = need(persist::Pool::open(place_of(path), layout));
  Tested tested(pool);
  need(tested.map->verify());
  need(tested.list->verify());
  need(tested.skip_list->verify());
  tested.map->for_each(
      [](Number key, Number value) { std::printf("0 %" PRIu64 " %" PRIu64 "\n", key, value); });
  tested.list->for_each([](Number key) { std::printf("1 %" PRIu64 " 0\n", key); });
  tested.skip_list->for_each([](Number key) { std::printf("2 %" PRIu64 " 0\n", key); });
  return 0;
}

} // namespace

int main(int count, char** arguments) {
  const std::string verb = count > 1 ? arguments[1] : "";
  if (count == 8) cut::stop_at(phase_of(arguments[6]), std::strtoull(arguments[7], nullptr, 10));
  if (verb == "run" && (count == 6 || count == 8))
    return run(arguments[2], arguments[3], arguments[4], arguments[5]);
  if (verb == "fences" && count == 3) return count_fences(arguments[2]);
  if (verb == "check" && count == 3) return check(arguments[2]);
  std::fprintf(stderr, "usage: power_cut run POOL LOG SEED WITHOUT [PHASE FENCE] | fences POOL | "
                       "check POOL\n");
  return 2;
}
