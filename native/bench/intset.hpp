// A set of integers under look-ups and updates at random, after the intset benchmark of the WSCAD
// 2022 paper on PMDK.
//
// Work      keys are drawn evenly from twice as many as the set holds at first, so that about half
//           of all operations succeed and the size stays where it was. Updates are split evenly
//           between insertions and removals.
// Media     pmem       the structure in a pool, as it is meant to be used
//           unflushed  the same code in a pool without flushes and fences: not crash-safe
//           dram       its volatile twin, the same code shape
//           pmdk       hash only: libpmemobj's own transactions, done correctly (map_tx)
// Checked   what was inserted and removed must add up to the size that is left; without updates
//           look-ups must find the keys that were put in, and no others.
// Thread safety  one IntsetBench a thread; run() works on a thread pinned to its processor.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "kernels/team.hpp"
#include "storelog/storelog.hpp"
#include "tier/spec.hpp"

namespace nearfar::bench {

enum class IntsetStructure : unsigned char { list, hash, skip_list };
enum class IntsetMedium : unsigned char { pmem, unflushed, dram, pmdk };

struct IntsetPlan {
  IntsetStructure structure = IntsetStructure::hash;
  IntsetMedium medium = IntsetMedium::pmem;
  std::uint64_t entries = 1024;
  unsigned update_percent = 50;
  tier::Spec tier; ///< of the pool; not looked at for dram
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

class IntsetBench {
public:
  /// Makes the set and fills it. Errors: bad_input (no entries, more than 2^32, over 100 % updates,
  /// pmdk of anything but hash), those of persist::Pool::create, no_space.
  static Result<IntsetBench> create(const IntsetPlan& plan);
  IntsetBench(IntsetBench&&) noexcept;
  ~IntsetBench();

  /// Operates for about `budget_ns`; may be called again. Errors: bad_input (the processor),
  /// failed_check, no_space.
  Result<IntsetRun> run(std::uint64_t budget_ns);

private:
  IntsetBench(const IntsetPlan& plan, std::unique_ptr<IntsetSubject> subject);

  IntsetPlan plan_;
  std::unique_ptr<IntsetSubject> subject_;
};

} // namespace nearfar::bench
