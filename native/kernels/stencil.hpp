// The stencils: rows of the eight-neighbor one, planes of the seven-point one in three dimensions.
//
// The two mean functions define the order of additions. The loops for all instruction sets add in
// this order, so their results are the same to the bit. Stores are ordinary ones (write-allocate),
// as in the copy kernel.
#pragma once

#include <cstddef>

namespace nearfar::kernels {

/// Bytes a sweep moves for each element where neighbors come from caches: one load, one store.
inline constexpr unsigned stencil_bytes = 16;

/// The mean of the eight neighbors of middle[i], by sums of columns that neighbors share.
inline double mean_of_eight(const double* above, const double* middle, const double* below,
                            std::size_t i) {
  const auto column = [&](std::size_t k) { return (above[k] + below[k]) + middle[k]; };
  return ((column(i - 1) + column(i + 1)) + (above[i] + below[i])) * 0.125;
}

/// The mean of middle[i] and its six neighbors: `width` elements make a row of a plane.
inline double mean_of_seven(const double* above, const double* middle, const double* below,
                            std::size_t i, std::size_t width) {
  return (((above[i] + below[i]) + (middle[i - width] + middle[i + width])) +
          ((middle[i - 1] + middle[i + 1]) + middle[i])) *
         (1.0 / 7.0);
}

/// out[i] = mean of the eight neighbors of middle[i], for 0 < i < columns - 1; the two ends are
/// border and are copied. `columns` > 0; `out` overlaps nothing.
void stencil_row(const double* above, const double* middle, const double* below, double* out,
                 std::size_t columns);

/// The same for two neighboring rows, in[1] and in[2], at once: each row is loaded into registers
/// half as often. in[0] lies above, in[3] below.
void stencil_two_rows(const double* const (&in)[4], double* const (&out)[2], std::size_t columns);

/// From this number of columns on, two rows are computed at a time, which is faster. For fewer
/// columns, the row after the next one is prefetched instead.
inline constexpr std::size_t two_rows_from = 4096;

/// A plane of the seven-point stencil: `elements` of it in rows of `width` (> 0); its outer rows
/// and the ends of all others are border and are copied.
void seven_point_plane(const double* above, const double* middle, const double* below, double* out,
                       std::size_t elements, std::size_t width);

} // namespace nearfar::kernels
