// The layer condition of a stencil: how much more than the least its sweeps move.
//
// Kernel         stencil8: out[i][j] is the mean of the eight neighbors of in[i][j], row by row.
// Traffic        least: an element of `in` is read once, its line of `out` is read for ownership
//                and written back: three element sizes. If a row has left the cache before the row
//                two below wants it, `in` is read up to three times: five element sizes.
// Factor         phi = lines fetched and written back / least, 1 to 5/3. It multiplies the 16 B an
//                element of 8 B that a copy is counted as (8 read, 8 written; what a copy reads for
//                ownership is in neither count, and in the same proportion in both).
// Limits         steady state of a sweep over many rows; no prefetcher, whose lines are wanted
//                anyway; addresses map to sets as they are, where last-level caches hash them.
#pragma once

#include "cache/cache.hpp"

namespace nearfar::cache {

/// phi of a sweep over rows of `columns` elements through a cache of this size and shape.
Result<double> layer_condition_factor(std::uint64_t columns, unsigned element_bytes,
                                      const Geometry& geometry, std::uint64_t seed);

} // namespace nearfar::cache
