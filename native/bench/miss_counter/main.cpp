// Runs a map or set benchmark, passes its accesses to a model of a host's caches, and prints the
// counters. An interface between this program and the Python package.
//
//   nearfar-miss-counter map TYPE OPERATION N VALUE_BYTES TIER SEED CPU OPERATIONS CACHES TLB
//                        PAGE_BYTES FLUSHES LAST_SIZES
//   nearfar-miss-counter set STRUCTURE MEDIUM N UPDATE_PERCENT TIER SEED CPU OPERATIONS CACHES TLB
//                        PAGE_BYTES FLUSHES LAST_SIZES
//
// CACHES, TLB    SIZE:WAYS,SIZE:WAYS,... from the level nearest to the core, in bytes and entries.
// FLUSHES        evict, keep or both: the assumed effect of a flush on its line.
// LAST_SIZES     BYTES,BYTES,...: further sizes of the last level, each a variant; or "-".
// Gets and sets run OPERATIONS operations to warm the caches, and as many that are counted.
//
// Prints lines of a key and numbers: operations, changed, fences, lines, flushes (calls),
// tlb_misses, walks. Then, for each variant and level, "level POLICY FLUSH_EVICTS LAST_BYTES LEVEL
// LOADS LOAD_MISSES STORES STORE_MISSES PREFETCHES WRITEBACKS", and for each variant "far POLICY
// FLUSH_EVICTS LAST_BYTES LOAD_MISSES": misses of the last level at addresses of the pool. After an
// error: the line "error CODE", a line with the message, and a line with the next step.
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <span>
#include <string_view>

#include "bench/intset.hpp"
#include "bench/map.hpp"
#include "bench/miss_counter/access_receiver.hpp"
#include "storelog/recorder.hpp"

using namespace nearfar;

namespace {

constexpr const char* error_names[] = {"bad_input", "not_found",   "exists",       "no_permission",
                                       "no_space",  "unsupported", "failed_check", "os_error"};
constexpr std::string_view types[] = {"map", "dram", "map_atomic", "map_tx", "map_rp"};
constexpr std::string_view operations[] = {"insert", "get", "remove"};
constexpr std::string_view media[] = {"pmem", "unflushed",   "dram",
                                      "pmdk", "pmdk_atomic", "pmdk_rp"};

template <class T>
bool read(std::string_view text, T& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size();
}

template <class Enum, std::size_t count>
bool read(std::string_view text, const std::string_view (&names)[count], Enum& value) {
  for (std::size_t i = 0; i < count; ++i)
    if (names[i] == text) {
      value = static_cast<Enum>(i);
      return true;
    }
  return false;
}

/// Calls add(first, second) for each pair of "first:second,first:second".
template <class Add>
bool read_pairs(std::string_view text, Add add) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view pair = text.substr(0, comma);
    const std::size_t colon = pair.find(':');
    std::uint64_t first = 0;
    unsigned second = 0;
    if (colon == pair.npos || !read(pair.substr(0, colon), first) ||
        !read(pair.substr(colon + 1), second))
      return false;
    add(first, second);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

bool read_sizes(std::string_view text, std::vector<std::uint64_t>& sizes) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (!read(text.substr(0, comma), sizes.emplace_back())) return false;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

struct Work {
  bool map = false;
  bench::MapPlan map_plan;
  bench::IntsetPlan set_plan;
  std::uint64_t operations = 0;
  cache::VariantsPlan caches;
};

bool read_work(char** words, Work& work) {
  std::uint64_t entries = 0;
  std::uint64_t fourth = 0; // bytes of a value, or percent of updates
  std::uint32_t seed = 1;
  int cpu = 0;
  work.map = std::string_view(words[1]) == "map";
  const bool kinds = work.map ? read(words[2], types, work.map_plan.type) &&
                                    read(words[3], operations, work.map_plan.operation)
                              : read(words[3], media, work.set_plan.medium);
  if (!work.map) work.set_plan.structure = words[2];
  if (!kinds || !read(words[4], entries) || !read(words[5], fourth) || !read(words[7], seed) ||
      !read(words[8], cpu) || !read(words[9], work.operations) ||
      !read(words[12], work.caches.page_bytes))
    return false;
  work.caches.evicting = std::string_view(words[13]) != "keep";
  work.caches.keeping = std::string_view(words[13]) != "evict";
  work.map_plan.operations = work.set_plan.entries = entries;
  work.map_plan.value_bytes = fourth;
  work.set_plan.update_percent = static_cast<unsigned>(fourth);
  work.map_plan.seed = seed;
  work.set_plan.seed = seed;
  work.map_plan.cpus = {cpu};
  work.set_plan.cpu = cpu;
  if (work.map_plan.operation == bench::MapOperation::get) work.map_plan.sample = work.operations;
  if (std::string_view(words[14]) != "-" && !read_sizes(words[14], work.caches.last_bytes))
    return false;
  return read_pairs(words[10],
                    [&](std::uint64_t size, unsigned ways) {
                      work.caches.levels.push_back({size, ways});
                    }) &&
         read_pairs(words[11], [&](std::uint64_t entries_of, unsigned ways) {
           work.caches.tlb.push_back({static_cast<unsigned>(entries_of), ways});
         });
}

/// Passes the accesses of a region to the caches. Resets the counters first, unless `warming`.
class CountedRegion final : public bench::MeasuredRegion {
public:
  CountedRegion(cache::HierarchyVariants& caches, bool warming)
      : caches_(caches), warming_(warming) {}
  Status prepare(std::size_t) override { return Done{}; }
  void begin(std::size_t) override {
    if (!warming_) caches_.forget_counts();
    before_ = storelog::thread_state.listener;
    storelog::thread_state.listener = &flushes_;
    bench::set_access_receiver(&caches_);
  }
  void end(std::size_t) override {
    bench::set_access_receiver(nullptr);
    storelog::thread_state.listener = before_;
  }
  std::uint64_t flushes() const { return flushes_.calls(); }

private:
  cache::HierarchyVariants& caches_;
  bool warming_;
  bench::FlushReceiver flushes_;
  storelog::Listener* before_ = nullptr;
};

struct OperationCounts {
  std::uint64_t operations = 0;
  std::uint64_t changed = 0;
  storelog::Counters counted;
  std::uint64_t flushes = 0;
};

void set_far(cache::HierarchyVariants& caches, std::span<const std::byte> pool) {
  const auto begin = reinterpret_cast<std::uintptr_t>(pool.data());
  caches.set_far(begin, begin + pool.size());
}

Result<OperationCounts> count_map(const Work& work, cache::HierarchyVariants& caches) {
  Result<bench::MapBench> map = bench::MapBench::create(work.map_plan);
  if (!map) return map.error();
  set_far(caches, map->pool());
  CountedRegion warm(caches, true);
  CountedRegion counted(caches, false);
  const bool gets = work.map_plan.operation == bench::MapOperation::get;
  if (gets)
    if (Result<bench::MapRun> run = map->run(bench::MapPass::whole, &warm); !run)
      return run.error();
  Result<bench::MapRun> run = map->run(bench::MapPass::whole, &counted);
  if (!run) return run.error();
  const std::uint64_t all = work.map_plan.operations;
  const std::uint64_t done = gets ? std::min(all, work.operations) : all;
  return OperationCounts{done, gets ? 0 : done, run->counted, counted.flushes()};
}

Result<OperationCounts> count_set(const Work& work, cache::HierarchyVariants& caches) {
  Result<bench::IntsetBench> set = bench::IntsetBench::create(work.set_plan);
  if (!set) return set.error();
  set_far(caches, set->pool());
  CountedRegion warm(caches, true);
  CountedRegion counted(caches, false);
  if (Result<bench::IntsetRun> run = set->run_operations(work.operations, &warm); !run)
    return run.error();
  Result<bench::IntsetRun> run = set->run_operations(work.operations, &counted);
  if (!run) return run.error();
  return OperationCounts{run->operations, run->changed, run->counted, counted.flushes()};
}

void print(const cache::VariantCounts& counts) {
  const char* policy = counts.policy == cache::Policy::lru ? "lru" : "random";
  for (std::size_t level = 0; level < counts.levels.size(); ++level) {
    const cache::LevelCounters& c = counts.levels[level];
    std::printf("level %s %d %" PRIu64 " %zu %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                " %" PRIu64 " %" PRIu64 "\n",
                policy, counts.flush_evicts, counts.last_bytes, level + 1, c.loads(),
                c.load_misses(), c.stores(), c.store_misses(), c.prefetches, c.writebacks);
  }
  std::printf("far %s %d %" PRIu64 " %" PRIu64 "\n", policy, counts.flush_evicts, counts.last_bytes,
              counts.far_load_misses);
}

void print(const OperationCounts& counts, const cache::HierarchyVariants& caches) {
  std::printf("operations %" PRIu64 "\nchanged %" PRIu64 "\nfences %" PRIu64 "\nlines %" PRIu64
              "\nflushes %" PRIu64 "\ntlb_misses %" PRIu64 "\nwalks %" PRIu64 "\n",
              counts.operations, counts.changed, counts.counted.fences, counts.counted.lines,
              counts.flushes, caches.tlb_misses(), caches.walks());
  for (const cache::VariantCounts& variant : caches.counts())
    print(variant);
}

int fail(const Error& error) {
  std::printf("error %s\n%s\n%s\n", error_names[static_cast<unsigned>(error.code)], error.what,
              error.next);
  return 1;
}

} // namespace

int main(int count, char** words) {
  Work work;
  if (count != 15 || !read_work(words, work))
    return fail(Error::make(Errc::bad_input, "this program is a part of nearfar")
                    .try_next("nearfar predict structure --help"));
  Result<tier::Spec> tier = tier::parse(words[6]);
  if (!tier) return fail(tier.error());
  work.map_plan.tier = work.set_plan.tier = *tier;
  Result<cache::HierarchyVariants> caches = cache::HierarchyVariants::create(work.caches);
  if (!caches) return fail(caches.error());
  Result<OperationCounts> counts = work.map ? count_map(work, *caches) : count_set(work, *caches);
  if (!counts) return fail(counts.error());
  print(*counts, *caches);
  return 0;
}
