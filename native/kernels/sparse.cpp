#include "kernels/sparse.hpp"

#include <algorithm>
#include <cmath>

namespace nearfar::kernels {

double sparse_step(const SparseMatrix& matrix, const double* now, const double* source,
                   double* next, std::size_t first, std::size_t end) {
  double largest = 0;
  for (std::size_t row = first; row < end; ++row) {
    double sum = 0;
    for (std::uint64_t k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k)
      sum += matrix.values[k] * now[matrix.columns[k]];
    const double value = damping * sum + (1 - damping) * source[row];
    largest = std::max(largest, std::abs(value - now[row]));
    next[row] = value;
  }
  return largest;
}

} // namespace nearfar::kernels
