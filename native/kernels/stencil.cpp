#include "kernels/stencil.hpp"

#include "kernels/dispatch.hpp"

namespace nearfar::kernels {

NEARFAR_DISPATCH void stencil_row(const double* above, const double* middle, const double* below,
                                  double* out, std::size_t columns) {
  const double* __restrict a = above;
  const double* __restrict m = middle;
  const double* __restrict b = below;
  double* __restrict o = out;
  o[0] = m[0];
  for (std::size_t i = 1; i + 1 < columns; ++i)
    o[i] =
        (((a[i - 1] + a[i]) + a[i + 1]) + (m[i - 1] + m[i + 1]) + ((b[i - 1] + b[i]) + b[i + 1])) *
        0.125;
  o[columns - 1] = m[columns - 1];
}

} // namespace nearfar::kernels
