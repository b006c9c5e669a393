// Insertions, look-ups and removals in a hash map, as pmembench's map_insert, map_get, map_remove.
//
// Keys      as pmembench draws them: glibc's rand_r from the seed, two draws a key, the low half
//           first. Look-ups and removals go through all keys in a random order, each once.
// Passes    whole      one span from the first operation to the last, nothing else in the loop
//           each       every operation timed by itself (time stamp counter, serialized), and the
//                      worst by the CPU time of its thread
//           dependent  gets only: the next key depends on the last value
//           batched    gets of nearfar's map only: get_many() of map_batch keys
// Values    of at most 8 bytes are in the map's own entry. Larger ones are records of nearfar's
//           map; in the maps after PMDK they are objects, written and flushed within the
//           insertion's transaction. A get reads all of a value.
// Writer    gets only: a thread that concurrently inserts and removes an entry of its own,
//           repeatedly.
// Checked   the result of every operation; values read are summed and compared.
// Counted   fences and lines of the measured pass only (storelog, bench/pmem_counting.hpp).
// Thread safety  one MapBench a thread; run() works on the CPUs of its plan. The maps after PMDK
//           have one lock each; if values are objects, operations exclude each other, as in
//           pmembench.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/histogram.hpp"
#include "base/result.hpp"
#include "bench/region.hpp"
#include "kernels/team.hpp"
#include "storelog/storelog.hpp"
#include "tier/spec.hpp"

namespace nearfar::bench {

/// nearfar's map in a pool and in DRAM, and the three after PMDK, whose counterparts are on tier
/// dram.
enum class MapType : unsigned char { map, dram, map_atomic, map_tx, map_rp };
enum class MapOperation : unsigned char { insert, get, remove };
enum class MapPass : unsigned char { whole, each, dependent, batched };
inline constexpr std::size_t map_batch = 256;

struct MapPlan {
  MapType type = MapType::map;
  MapOperation operation = MapOperation::insert;
  std::uint64_t operations = 0; ///< of all threads; also the entries of the map
  std::uint64_t value_bytes = 8;
  bool alloc = false; ///< pmembench's --alloc: values are objects never written nor read
  tier::Spec tier;    ///< of the pool, a directory for one without a name; or of the counterpart
  std::vector<int> cpus;
  std::optional<int> writer_cpu = {}; ///< of the writer; without a value there is none
  std::uint32_t seed = 1;
  std::uint64_t sample = 0; ///< gets of one run, each run continues after the last; 0: all keys

  /// Whether it is nearfar's map, in a pool or in DRAM; else one after PMDK.
  bool ours() const { return type == MapType::map || type == MapType::dram; }
  /// Whether values are words in the map itself; else each has memory of its own.
  bool words() const { return value_bytes <= sizeof(std::uint64_t) && !alloc; }
  /// Whether it is a volatile counterpart: that of nearfar's map has a type, the others are on tier
  /// dram.
  bool in_dram() const { return type == MapType::dram || (!ours() && !tier.holds_pools()); }
};

/// Times of single operations exist only after a pass `each`.
struct MapRun {
  double seconds = 0; ///< first start to last end of the loops
  double mean_ns = 0;
  double min_ns = 0;
  double largest_ns = 0;
  std::vector<double> percentiles_ns; ///< of map_percentiles
  double worst_cpu_ns = 0;            ///< upper bound, see map_loops.hpp
  storelog::Counters counted;         ///< of all threads but the writer
  std::uint64_t written = 0;          ///< insertions by the writer, each with its removal
  std::vector<kernels::Member> members;
};

inline constexpr double map_percentiles[] = {0.5, 0.9, 0.99, 0.999, 0.9999};

class MapSubject; // a map and the loops over it

class MapBench {
public:
  /// Makes an empty map, and for gets and removals loads it with all keys. Errors: bad_input (no
  /// operations, too many, no processor, a value the map cannot hold), failed_check, those of
  /// persist::Pool::create.
  static Result<MapBench> create(const MapPlan& plan);
  MapBench(MapBench&&) noexcept;
  MapBench& operator=(MapBench&&) noexcept;
  ~MapBench();

  double load_seconds() const { return load_seconds_; }
  std::span<const std::byte> pool() const; ///< empty for a map in DRAM

  /// Insertions and removals can be run once; gets any number of times. Errors: bad_input (a second
  /// time; `dependent` of anything but gets, `batched` of a map after PMDK), no_space,
  /// failed_check. `region` is notified by each thread but the writer when its first operation
  /// begins and its last has ended.
  Result<MapRun> run(MapPass pass, MeasuredRegion* region = nullptr);

private:
  explicit MapBench(MapPlan plan);
  Status load();

  MapPlan plan_;
  std::vector<std::uint64_t> keys_; ///< in the order of the operations
  std::unique_ptr<MapSubject> subject_;
  std::span<const std::uint64_t> next_keys();

  double load_seconds_ = 0;
  bool spent_ = false;
  std::uint64_t sampled_ = 0; ///< keys that runs of a sample have gone through
};

} // namespace nearfar::bench
