// The arrays of probe::ArrayBench inside a pool of libpmemobj, to measure the effect of the pool on
// kernels.
//
// Thread safety  as probe::ArrayBench.
#pragma once

#include <memory>

#include "persist/pool.hpp"
#include "probe/bandwidth.hpp"

namespace nearfar::bench {

/// Three objects of a pool without a name, and the bench over them. The kernels use them as plain
/// memory and do not flush.
struct PoolArrays {
  std::unique_ptr<persist::Pool> pool;
  probe::ArrayBench bench;

  /// Errors: those of persist::Pool::create and allocate, of probe::ArrayBench::over.
  static Result<PoolArrays> create(const tier::Spec& tier, std::size_t elements,
                                   std::span<const int> cpus);
};

} // namespace nearfar::bench
