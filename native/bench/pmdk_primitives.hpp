// Times of libpmemobj's own operations on a pool: the costs of structures that are built on them.
//
// Thread safety  one PrimitiveBench a thread; run() works on a thread pinned to its processor.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "kernels/team.hpp"
#include "storelog/storelog.hpp"
#include "tier/spec.hpp"

namespace nearfar::bench {

enum class Primitive : unsigned char {
  persist,        ///< 8 bytes stored, then pmemobj_persist
  tx_1_range,     ///< a transaction that logs and stores 8 bytes
  tx_8_ranges,    ///< the same, 8 times 8 bytes on lines of their own
  tx_alloc,       ///< a transaction that allocates 64 bytes and logs two ranges of 8
  publish_1_word, ///< one word set and published, by a redo log
  alloc_publish,  ///< 64 bytes reserved and filled, then published with the handle that links them
  alloc_free,     ///< 64 bytes allocated and freed again, atomically
};

struct PrimitiveRun {
  double seconds = 0;
  storelog::Counters counted;
  std::vector<kernels::Member> members;
};

class PrimitiveBench {
public:
  /// Makes a pool of 64 MiB at the tier. Errors: those of persist::Pool::create.
  static Result<PrimitiveBench> create(const tier::Spec& tier, int cpu);
  PrimitiveBench(PrimitiveBench&&) noexcept;
  ~PrimitiveBench();

  /// Does it `count` > 0 times. Errors: bad_input (the processor), no_space, os_error.
  Result<PrimitiveRun> run(Primitive primitive, std::uint64_t count);

private:
  struct State;
  PrimitiveBench(std::unique_ptr<State> state, int cpu);

  std::unique_ptr<State> state_;
  int cpu_;
};

} // namespace nearfar::bench
