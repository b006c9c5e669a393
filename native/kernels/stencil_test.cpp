#include "kernels/stencil.hpp"

#include <doctest/doctest.h>
#include <vector>

using namespace nearfar;

TEST_CASE("each element is the mean of the eight around it, the ends are kept") {
  // 1 2 4 8 / 16 32 64 128 / 256 512 1024 2048: every subset of them has a sum of its own
  const std::vector<double> above = {1, 2, 4, 8};
  const std::vector<double> middle = {16, 32, 64, 128};
  const std::vector<double> below = {256, 512, 1024, 2048};
  std::vector<double> out(4, -1);
  kernels::stencil_row(above.data(), middle.data(), below.data(), out.data(), 4);
  CHECK(out[0] == 16);
  CHECK(out[1] == (1 + 2 + 4 + 16 + 64 + 256 + 512 + 1024) / 8.0);
  CHECK(out[2] == (2 + 4 + 8 + 32 + 128 + 512 + 1024 + 2048) / 8.0);
  CHECK(out[3] == 128);
}

TEST_CASE("rows of one and two elements are all border") {
  for (const std::size_t columns : {1u, 2u}) {
    const std::vector<double> row(columns, 3.0);
    const std::vector<double> other(columns, 7.0);
    std::vector<double> out(columns, -1);
    kernels::stencil_row(other.data(), row.data(), other.data(), out.data(), columns);
    CHECK(out == row);
  }
}
