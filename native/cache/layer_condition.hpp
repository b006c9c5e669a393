// The layer condition of a stencil: the traffic of its sweeps over the minimum.
//
// Kernel         stencil8: out[i][j] is the mean of the eight neighbors of in[i][j], row by row.
// Traffic        minimum: an element of `in` is read once, its line of `out` is read for ownership
//                and written back: three element sizes. If a row is evicted before the row two
//                below requires it, `in` is read up to three times: five element sizes.
// Factor         phi = lines fetched and written back / minimum, 1 to 5/3. It multiplies the 16 B
//                that a copy is counted as for an element of 8 B (8 read, 8 written; reads for
//                ownership are in neither count, and in the same proportion in both).
// Pages          scattered: each page of 4 KiB is in a random frame, as in an operating system, and
//                the sets of a page follow from its frame. The number of lines that compete for a
//                set between two uses of a line is then binomially distributed, so that rows are
//                evicted from an LRU cache gradually, with more ways more sharply (Kessler and
//                Hill, ACM TOCS 10(4), 1992). In order: sets fill evenly, and LRU keeps all of a
//                row or nothing.
// Limits         steady state of a sweep over many rows; no prefetcher, because its lines would be
//                fetched anyway.
#pragma once

#include "cache/cache.hpp"

namespace nearfar::cache {

enum class Pages : unsigned char { in_order, scattered };

/// phi of a sweep over rows of `columns` elements through a cache of this size and shape.
Result<double> layer_condition_factor(std::uint64_t columns, unsigned element_bytes,
                                      const Geometry& geometry, Pages pages, std::uint64_t seed);

} // namespace nearfar::cache
