// One row of the eight-neighbour stencil: the mean of the elements around each.
#pragma once

#include <cstddef>

namespace nearfar::kernels {

/// Bytes a sweep moves for each element where neighbours come from caches: one load, one store.
inline constexpr unsigned stencil_bytes = 16;

/// out[i] = mean of the eight neighbours of middle[i], for 0 < i < columns - 1; the two ends are
/// border and are copied. `columns` > 0; `out` overlaps nothing. Always adds in the same order, so
/// every build and instruction set gives the same bits.
void stencil_row(const double* above, const double* middle, const double* below, double* out,
                 std::size_t columns);

} // namespace nearfar::kernels
