// A set of integers under look-ups and updates at random, after the intset benchmark of the WSCAD
// 2022 paper on PMDK.
//
// Work      keys are drawn evenly from a range twice as large as the initial set, so that about
//           half of all operations succeed and the size stays constant. Updates are split evenly
//           between insertions and removals.
// Media     pmem       the structure in a pool, as programs use it
//           unflushed  the same code in a pool without flushes and fences: not crash-safe
//           dram       its volatile counterpart, the same code shape
//           pmdk       libpmemobj's own transactions, done correctly (map_tx, pmdk_sorted.hpp)
//           pmdk_atomic, pmdk_rp   hash only: the other maps after PMDK
// Checked   insertions and removals must add up to the final size; without updates, look-ups must
//           find the inserted keys, and no others.
// Thread safety  one IntsetBench a thread; run() works on a thread pinned to its processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/region.hpp"
#include "kernels/team.hpp"
#include "storelog/storelog.hpp"
#include "tier/spec.hpp"

namespace nearfar::bench {

enum class IntsetMedium : unsigned char { pmem, unflushed, dram, pmdk, pmdk_atomic, pmdk_rp };

/// All sets: list, hash, skip_list, and others in sets/ (intset_kind.hpp).
std::vector<std::string> intset_structures();

struct IntsetPlan {
  std::string structure = "hash"; ///< one of intset_structures()
  IntsetMedium medium = IntsetMedium::pmem;
  std::uint64_t entries = 1024;
  unsigned update_percent = 50;
  tier::Spec tier; ///< of the pool; the counterpart lies in DRAM, or on the node if it is one
  int cpu = 0;
  std::uint64_t seed = 1;
};

struct IntsetRun {
  std::uint64_t operations = 0;
  std::uint64_t found = 0;   ///< look-ups whose key was there
  std::uint64_t changed = 0; ///< insertions and removals that found something to do
  double seconds = 0;
  storelog::Counters counted;
  std::vector<kernels::Member> members;
};

class IntsetSubject; // a set and the loop over it
struct IntsetEnd;    // when a run ends

class IntsetBench {
public:
  /// Makes the set and fills it. Errors: bad_input (no entries, more than 2^32, over 100 % updates,
  /// an unknown structure, a version on libpmemobj that it has not), those of
  /// persist::Pool::create, no_space.
  static Result<IntsetBench> create(const IntsetPlan& plan);
  IntsetBench(IntsetBench&&) noexcept;
  ~IntsetBench();

  std::span<const std::byte> pool() const; ///< empty for a set in DRAM

  /// Operates for about `budget_ns`; may be called again. `region` is notified where that begins
  /// and ends. Errors: bad_input (the processor), failed_check, no_space.
  Result<IntsetRun> run(std::uint64_t budget_ns, MeasuredRegion* region = nullptr);
  /// The same for so many operations, however long they take.
  Result<IntsetRun> run_operations(std::uint64_t operations, MeasuredRegion* region);

private:
  IntsetBench(const IntsetPlan& plan, std::unique_ptr<IntsetSubject> subject);
  Result<IntsetRun> run_until(const IntsetEnd& end, MeasuredRegion* region);

  IntsetPlan plan_;
  std::unique_ptr<IntsetSubject> subject_;
};

} // namespace nearfar::bench
