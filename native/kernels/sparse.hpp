// One step of an iterated sparse matrix-vector product, compressed by rows (CRS), with damping.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::kernels {

struct SparseMatrix {
  const std::uint64_t* starts;  ///< index of the first element of each row, and of the end
  const std::uint32_t* columns; ///< column of each stored element
  const double* values;
};

inline constexpr double damping = 0.85;

/// next[i] = damping * (A now)[i] + (1 - damping) * source[i] for rows [first, end). Returns the
/// largest |next[i] - now[i]|.
double sparse_step(const SparseMatrix& matrix, const double* now, const double* source,
                   double* next, std::size_t first, std::size_t end);

} // namespace nearfar::kernels
