#include "kernels/passes.hpp"

#include <cmath>
#include <doctest/doctest.h>

#include "kernels/sparse.hpp"

using namespace nearfar;

TEST_CASE("five passes see every element, for any assignment of chunks to threads") {
  for (const std::size_t elements : {1u, 2u, 7u, 4095u, 4096u, 4097u, 12'289u}) {
    CAPTURE(elements);
    std::vector<double> x(elements);
    for (std::size_t i = 0; i < elements; ++i)
      x[i] = static_cast<double>((i * 37) % 1009) - 300; // whole numbers: sums are exact
    kernels::Analysis expected{0, 0, x[0], x[0], 0};
    for (std::size_t i = 0; i < elements; ++i) {
      expected.sum += x[i];
      expected.squares += x[i] * x[i];
      expected.smallest = std::min(expected.smallest, x[i]);
      expected.largest = std::max(expected.largest, x[i]);
      if (i > 0) expected.step = std::max(expected.step, std::abs(x[i] - x[i - 1]));
    }
    const std::size_t count = (elements - 1) / kernels::chunk_elements + 1;
    for (std::size_t cut = 0; cut <= count; ++cut) {
      std::vector<kernels::Analysis> chunks(count);
      kernels::Pacer unpaced(nullptr);
      kernels::analyze_chunks(x.data(), elements, cut, count, chunks.data(), unpaced);
      kernels::analyze_chunks(x.data(), elements, 0, cut, chunks.data(), unpaced);
      CHECK(kernels::combine(chunks) == expected);
    }
  }
}

TEST_CASE("a step multiplies, damps, and returns the largest change of its rows") {
  // ( 0 2 )   now (1, 3)   source (10, 20)
  // ( 1 1 )
  const std::uint64_t starts[] = {0, 1, 3};
  const std::uint32_t columns[] = {1, 0, 1};
  const double values[] = {2, 1, 1};
  const double now[] = {1, 3};
  const double source[] = {10, 20};
  double next[] = {-1, -1};
  const kernels::SparseMatrix matrix{starts, columns, values};
  const double changed = kernels::sparse_step(matrix, now, source, next, 0, 1);
  CHECK(next[0] == doctest::Approx(0.85 * 6 + 0.15 * 10));
  CHECK(next[1] == -1); // not its row
  CHECK(changed == doctest::Approx(5.6));
  CHECK(kernels::sparse_step(matrix, now, source, next, 1, 2) == doctest::Approx(3.4));
}
