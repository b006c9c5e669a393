// What map_atomic, map_tx and map_rp share: the constants of PMDK's example hash maps, so that
// counts and times compare, and the form of their results.
//
// Source        the three maps in PMDK's examples (1.12), whose behaviour is followed and whose
//               code is not: 64-bit keys to object handles, one writer at a time, no isolation.
// Durability    each header tells its own order; all of them stand on libpmemobj's primitives.
// Thread safety none: callers take turns, as they do in PMDK's benchmark.
#pragma once

#include <cstdint>
#include <libpmemobj.h>

#include "base/result.hpp"

namespace nearfar::structures {

/// The universal hash of map_atomic and map_tx: ((a key + b) mod p) mod buckets, modulo 2^64
/// inside.
struct ChainHash {
  std::uint32_t a = 1804289383; ///< what glibc's rand() yields first and second, never seeded
  std::uint32_t b = 846930886;
  std::uint64_t p = 32212254719;

  std::uint64_t operator()(std::uint64_t key, std::uint64_t buckets) const {
    return (a * key + b) % p % buckets;
  }
};

inline constexpr std::uint64_t initial_buckets = 10;

/// Whether an insertion that made a chain of `chain` entries doubles the buckets.
inline bool chain_overflows(std::uint64_t chain, std::uint64_t entries, std::uint64_t buckets) {
  return chain > 10 || (chain > 5 && entries > 2 * buckets);
}

/// The object behind a handle; null for a null handle.
template <class T>
T* direct(PMEMoid handle) {
  return static_cast<T*>(pmemobj_direct(handle));
}

/// The failure that libpmemobj left behind in errno: no_space where the pool is full.
Error pool_error(const char* doing);

} // namespace nearfar::structures
