// PMDK's atomic hash map (1.x), replayed line by line through a cache of its host.
//
// Purpose        visits and misses of a get, an insertion or a removal, at any number of entries,
//                only from the structure of the code: nothing is measured and nothing fitted.
// Replayed       keys from glibc's rand_r, two draws a key, the low half first; the map's hash;
//                doubling when a chain exceeds 10 entries, or 5 at more than 2 a bucket, and
//                halving when a removal leaves fewer entries than buckets; a bucket head of 80
//                bytes after 24 bytes of headers; two allocations an entry, value then entry, in
//                order of insertion, in units of 128 bytes after a header of 16; list neighbors
//                rewritten and flushed; keys then visited in a random order without repetition.
// Also           the benchmark's own streams in the same cache: its keys, its shuffle, its results.
// Left out       the allocator's bitmaps and logs; the map's own header, always in the L1, is
//                flushed and fenced but not looked up.
#pragma once

#include <vector>

#include "cache/cache.hpp"

namespace nearfar::cache {

enum class MapOperation : unsigned char { insert, get, remove };

/// Two properties of the published runs are unknown: both values are replayed.
struct MapVariant {
  Policy policy = Policy::lru;
  bool flush_evicts = true; ///< or keeps the line, clean
};

struct MapReplayPlan {
  std::uint64_t operations = 0; ///< entries inserted, and then visited if the operation is another
  std::uint64_t value_bytes = 1;
  std::uint64_t result_bytes = 64; ///< what the benchmark keeps of each operation
  Geometry geometry;               ///< the cache of a core, as one; its policy is the variants'
  std::vector<MapVariant> variants;
  std::uint64_t seed = 1; ///< of random replacement; the keys' seed is always 1
};

/// Sums over all operations. A visit reads a bucket's head or an entry; a head that straddles two
/// lines is one visit of two loads that do not wait for each other.
struct MapReplay {
  std::uint64_t operations = 0;
  std::uint64_t buckets = 0; ///< after the last operation
  std::uint64_t walked = 0;  ///< entries looked at: visits less the heads
  std::uint64_t heads = 0;   ///< heads looked at: an insertion looks twice
  std::uint64_t moved = 0;   ///< entries moved between bucket arrays
  std::uint64_t flushed_lines = 0;
  std::uint64_t fences = 0;
  std::vector<std::uint64_t> missed; ///< visits that waited for memory, by variant
};

/// All variants in one pass. Refuses no operations, more than 10^8, and no variants.
/// For gets and removals, the replay starts with empty caches, so late that insertions (at least a
/// line each) and the shuffle still fill them twice before the first visit.
Result<MapReplay> replay_map(const MapReplayPlan& plan, MapOperation operation);

/// glibc's rand_r: 31 bits; advances the seed.
std::uint32_t glibc_rand_r(std::uint32_t& seed);

} // namespace nearfar::cache
