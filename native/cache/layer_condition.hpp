// The layer condition of a stencil: the traffic of its sweeps over the minimum.
//
// Kernel         stencil8: out[i][j] is the mean of the eight neighbors of in[i][j], row by row.
// Traffic        least: an element of `in` is read once, its line of `out` is read for ownership
//                and written back: three element sizes. If a row has left the cache before the row
//                two below wants it, `in` is read up to three times: five element sizes.
// Factor         phi = lines fetched and written back / least, 1 to 5/3. It multiplies the 16 B an
//                element of 8 B that a copy is counted as (8 read, 8 written; what a copy reads for
//                ownership is in neither count, and in the same proportion in both).
// Pages          scattered: each page of 4 KiB lies at a random frame, as an operating system
//                places it, and the sets of a page follow from its frame. The lines that compete
//                for a set between two uses of a line are then binomially distributed about their
//                mean, so rows leave an LRU cache little by little, the more ways the more sharply
//                (Kessler and Hill, ACM TOCS 10(4), 1992). In order: sets fill evenly, and LRU
//                keeps all of a row or nothing.
// Limits         steady state of a sweep over many rows; no prefetcher, whose lines are wanted
//                anyway.
#pragma once

#include "cache/cache.hpp"

namespace nearfar::cache {

enum class Pages : unsigned char { in_order, scattered };

/// phi of a sweep over rows of `columns` elements through a cache of this size and shape.
Result<double> layer_condition_factor(std::uint64_t columns, unsigned element_bytes,
                                      const Geometry& geometry, Pages pages, std::uint64_t seed);

} // namespace nearfar::cache
