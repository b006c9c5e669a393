#include "kernels/stencil.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/dispatch.hpp"

namespace nearfar::kernels {

namespace {

namespace sse2 {
constexpr std::size_t lanes = 2;
#define NEARFAR_BEFORE 1, 2
#define NEARFAR_AFTER 1, 2
#include "kernels/stencil_loop.inc"
#undef NEARFAR_BEFORE
#undef NEARFAR_AFTER
} // namespace sse2

#ifdef NEARFAR_DISPATCHES
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {
constexpr std::size_t lanes = 4;
#define NEARFAR_BEFORE 3, 4, 5, 6
#define NEARFAR_AFTER 1, 2, 3, 4
#include "kernels/stencil_loop.inc"
#undef NEARFAR_BEFORE
#undef NEARFAR_AFTER
} // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
constexpr std::size_t lanes = 8;
#define NEARFAR_BEFORE 7, 8, 9, 10, 11, 12, 13, 14
#define NEARFAR_AFTER 1, 2, 3, 4, 5, 6, 7, 8
#include "kernels/stencil_loop.inc"
#undef NEARFAR_BEFORE
#undef NEARFAR_AFTER
} // namespace avx512
#pragma GCC pop_options
#endif

struct Loops {
  decltype(&sse2::one_row) one;
  decltype(&sse2::two_rows) two;
  decltype(&sse2::seven_rows) seven;
};

Loops best_loops() {
#ifdef NEARFAR_DISPATCHES
  if (__builtin_cpu_supports("avx512f"))
    return {avx512::one_row, avx512::two_rows, avx512::seven_rows};
  if (__builtin_cpu_supports("avx2")) return {avx2::one_row, avx2::two_rows, avx2::seven_rows};
#endif
  return {sse2::one_row, sse2::two_rows, sse2::seven_rows};
}

const Loops loops = best_loops();

/// The elements that no whole vector holds, and the border.
void finish(const double* above, const double* middle, const double* below, double* out,
            std::size_t first, std::size_t columns) {
  for (std::size_t i = std::max<std::size_t>(first, 1); i + 1 < columns; ++i)
    out[i] = mean_of_eight(above, middle, below, i);
  out[0] = middle[0];
  out[columns - 1] = middle[columns - 1];
}

} // namespace

void stencil_row(const double* above, const double* middle, const double* below, double* out,
                 std::size_t columns) {
  finish(above, middle, below, out, loops.one(above, middle, below, out, columns), columns);
}

void stencil_two_rows(const double* const (&in)[4], double* const (&out)[2], std::size_t columns) {
  const std::size_t first = loops.two(in, out, columns);
  for (std::size_t k = 0; k < 2; ++k)
    finish(in[k], in[k + 1], in[k + 2], out[k], first, columns);
}

void seven_point_plane(const double* above, const double* middle, const double* below, double* out,
                       std::size_t elements, std::size_t width) {
  const std::size_t last_row = elements - width;
  std::memcpy(out, middle, width * sizeof(double));
  loops.seven(above, middle, below, out, elements, width);
  std::memcpy(out + last_row, middle + last_row, width * sizeof(double));
}

} // namespace nearfar::kernels
