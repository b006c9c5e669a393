// The load of the power-cut test: map, list and skip list in one pool, by two threads.
//
//   power_cut run POOL LOG SEED nothing|flushes|fence   until the power goes; makes POOL if absent
//   power_cut check POOL                                 verifies, and prints what is there
//
// `nothing` is taken out in the test; `flushes` and `fence` are its controls, and take away what
// the structures themselves flush or fence.
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

struct Tested {
  explicit Tested(persist::Pool& pool)
      : medium(pool), root(*reinterpret_cast<Root*>(pool.root())),
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

/// storelog reports where a recorder is attached; cut_log.cpp takes what it reports.
void stream_this_thread() {
  static char anything;
  storelog::thread_state.recorder = reinterpret_cast<storelog::Recorder*>(&anything);
}

/// Each thread has keys of its own, so that the order of its operations is the order of a key's.
void work(Tested& tested, Number thread, Number seed) {
  stream_this_thread();
  Random random(seed * 2 + thread);
  for (Number step = 0;; ++step) {
    const Number structure = step % 3;
    const Number key = random.below(keys[structure] / 2) * 2 + thread;
    const bool remove = random.below(100) < 35;
    const Number value = random.next();
    cut::begin(thread, structure, remove ? 1 : 0, key, value);
    cut::acknowledge(thread, tested.apply(structure, remove, key, value) ? 1 : 0);
  }
}

int run(const char* path, const char* log, const char* seed, const std::string& without) {
  const int port = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (port < 0) return std::perror(log), 1;
  const auto what = without == "flushes" ? cut::Without::flushes
                    : without == "fence" ? cut::Without::fence
                                         : cut::Without::nothing;
  cut::stream_to(port, path, what);
  const tier::Spec place = need(tier::parse((std::string("fsdax:") + path).c_str()));
  persist::Pool pool =
      access(path, F_OK) == 0
          ? need(persist::Pool::open(place, layout))
          : need(persist::Pool::create(place, layout, {pool_bytes, sizeof(Root), false}));
  stream_this_thread();
  Tested tested(pool);
  const Number number = std::strtoull(seed, nullptr, 10);
  std::thread other([&] { work(tested, 1, number); });
  work(tested, 0, number);
  return 0;
}

int check(const char* path) {
  const tier::Spec place = need(tier::parse((std::string("fsdax:") + path).c_str()));
  persist::Pool pool = need(persist::Pool::open(place, layout));
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
  if (count == 6 && std::strcmp(arguments[1], "run") == 0)
    return run(arguments[2], arguments[3], arguments[4], arguments[5]);
  if (count == 3 && std::strcmp(arguments[1], "check") == 0) return check(arguments[2]);
  std::fprintf(stderr, "usage: power_cut run POOL LOG SEED WITHOUT | power_cut check POOL\n");
  return 2;
}
