#include "kernels/stencil.hpp"

#include <doctest/doctest.h>
#include <vector>

#include "base/random.hpp"

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

TEST_CASE("one row, two rows at once and the plain mean give the same bits at any width") {
  Random random(7);
  for (std::size_t columns = 1; columns < 70; ++columns) {
    CAPTURE(columns);
    std::vector<std::vector<double>> in(4, std::vector<double>(columns));
    for (std::vector<double>& row : in)
      for (double& x : row)
        x = static_cast<double>(random.next() >> 11) * 0x1p-53;
    std::vector<std::vector<double>> expected = {in[1], in[2]};
    for (std::size_t k = 0; k < 2; ++k)
      for (std::size_t i = 1; i + 1 < columns; ++i)
        expected[k][i] =
            kernels::mean_of_eight(in[k].data(), in[k + 1].data(), in[k + 2].data(), i);
    std::vector<std::vector<double>> out(2, std::vector<double>(columns, -1));
    const double* const rows[4] = {in[0].data(), in[1].data(), in[2].data(), in[3].data()};
    double* const both[2] = {out[0].data(), out[1].data()};
    kernels::stencil_two_rows(rows, both, columns);
    CHECK(out == expected);
    std::vector<double> one(columns, -1);
    kernels::stencil_row(rows[0], rows[1], rows[2], one.data(), columns);
    CHECK(one == expected[0]);
  }
}

TEST_CASE("a plane of seven points: the mean of each element and its six neighbors") {
  constexpr std::size_t width = 5, elements = 4 * width;
  std::vector<double> above(elements, 0), middle(elements, 0), below(elements, 0);
  const std::size_t at = width + 2;
  above[at] = 1, middle[at - width] = 2, middle[at - 1] = 4, middle[at] = 8, middle[at + 1] = 16;
  middle[at + width] = 32, below[at] = 64;
  above[at - 1] = below[at + 1] = middle[at - width - 1] = middle[at + width + 1] = 1000;
  std::vector<double> out(elements, -1);
  kernels::seven_point_plane(above.data(), middle.data(), below.data(), out.data(), elements,
                             width);
  CHECK(out[at] == 127 * (1.0 / 7.0));
  for (std::size_t i = 0; i < elements; ++i)
    if (i < width || i >= elements - width || i % width == 0 || i % width == width - 1)
      CHECK(out[i] == middle[i]);
}

TEST_CASE("planes of any width have the bits of the plain mean") {
  Random random(11);
  for (std::size_t width = 1; width < 40; ++width)
    for (const std::size_t rows : {1u, 2u, 3u, 5u}) {
      CAPTURE(width);
      CAPTURE(rows);
      std::vector<std::vector<double>> in(3, std::vector<double>(rows * width));
      for (std::vector<double>& plane : in)
        for (double& x : plane)
          x = static_cast<double>(random.next() >> 11) * 0x1p-53;
      std::vector<double> expected = in[1];
      for (std::size_t row = 1; row + 1 < rows; ++row)
        for (std::size_t i = row * width + 1; i + 1 < (row + 1) * width; ++i)
          expected[i] = kernels::mean_of_seven(in[0].data(), in[1].data(), in[2].data(), i, width);
      std::vector<double> out(rows * width, -1);
      kernels::seven_point_plane(in[0].data(), in[1].data(), in[2].data(), out.data(), rows * width,
                                 width);
      CHECK(out == expected);
    }
}
