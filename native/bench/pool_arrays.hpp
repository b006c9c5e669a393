// The arrays of probe::ArrayBench inside a pool of libpmemobj: what its being one costs a kernel.
//
// Thread safety  as probe::ArrayBench.
#pragma once

#include <memory>

#include "persist/pool.hpp"
#include "probe/bandwidth.hpp"

namespace nearfar::bench {

/// Three objects of a pool without a name, and the bench over them. They are plain memory to the
/// kernels, which flush nothing.
struct PoolArrays {
  std::unique_ptr<persist::Pool> pool;
  probe::ArrayBench bench;

  /// Errors: those of persist::Pool::create and allocate, of probe::ArrayBench::over.
  static Result<PoolArrays> create(const tier::Spec& tier, std::size_t elements,
                                   std::span<const int> cpus);
};

} // namespace nearfar::bench
