// The computations themselves, over Views; see programs.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "bench/program_view.hpp"

namespace nearfar::bench {

/// Quicksort after Hoare: the middle element is the pivot, the larger part is left for the loop.
template <class R>
void quicksort(const View<std::int32_t, R>& a, std::size_t begin, std::size_t end) {
  while (end - begin > 1) {
    const std::int32_t pivot = a.get(begin + (end - begin - 1) / 2);
    std::size_t low = begin;
    std::size_t high = end - 1;
    for (;;) {
      std::int32_t left = a.get(low);
      while (left < pivot)
        left = a.get(++low);
      std::int32_t right = a.get(high);
      while (right > pivot)
        right = a.get(--high);
      if (low >= high) break;
      a.set(low++, right);
      a.set(high--, left);
    }
    const std::size_t split = high + 1;
    if (split - begin < end - split) {
      quicksort(a, begin, split);
      begin = split;
    } else {
      quicksort(a, split, end);
      end = split;
    }
  }
}

/// Mergesort, top down: halves are sorted, merged into the buffer, and copied back.
template <class R>
void mergesort(const View<std::int32_t, R>& a, const View<std::int32_t, R>& buffer,
               std::size_t begin, std::size_t end) {
  if (end - begin < 2) return;
  const std::size_t middle = begin + (end - begin) / 2;
  mergesort(a, buffer, begin, middle);
  mergesort(a, buffer, middle, end);
  std::size_t left = begin;
  std::size_t right = middle;
  std::int32_t from_left = a.get(left);
  std::int32_t from_right = a.get(right);
  for (std::size_t i = begin; i < end; ++i)
    if (right >= end || (left < middle && from_left <= from_right)) {
      buffer.set(i, from_left);
      if (++left < middle) from_left = a.get(left);
    } else {
      buffer.set(i, from_right);
      if (++right < end) from_right = a.get(right);
    }
  for (std::size_t i = begin; i < end; ++i)
    a.set(i, buffer.get(i));
}

/// c = a b, row by row and column by column, as in textbooks.
template <class R>
void multiply(const View<double, R>& a, const View<double, R>& b, const View<double, R>& c,
              std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k)
        sum += a.get(i * n + k) * b.get(k * n + j);
      c.set(i * n + j, sum);
    }
}

/// D3Q19 (Qian, d'Humieres, Lallemand 1992): velocities and weights.
struct D3Q19 {
  static constexpr std::size_t directions = 19;
  static constexpr std::array<std::array<int, 3>, directions> velocity = {{
      {0, 0, 0},  {1, 0, 0},   {-1, 0, 0},  {0, 1, 0},  {0, -1, 0}, {0, 0, 1},   {0, 0, -1},
      {1, 1, 0},  {-1, -1, 0}, {1, -1, 0},  {-1, 1, 0}, {1, 0, 1},  {-1, 0, -1}, {1, 0, -1},
      {-1, 0, 1}, {0, 1, 1},   {0, -1, -1}, {0, 1, -1}, {0, -1, 1},
  }};
  static constexpr double weight(std::size_t q) {
    return q == 0 ? 1.0 / 3 : q < 7 ? 1.0 / 18 : 1.0 / 36;
  }
};

/// The part of a distribution in direction q at rest density and speed: second order in the speed.
inline double equilibrium(std::size_t q, double density, const std::array<double, 3>& u) {
  const std::array<int, 3>& e = D3Q19::velocity[q];
  const double along = e[0] * u[0] + e[1] * u[1] + e[2] * u[2];
  const double square = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
  return D3Q19::weight(q) * density * (1 + 3 * along + 4.5 * along * along - 1.5 * square);
}

/// One step in a periodic cube of edge n: collision after Bhatnagar, Gross and Krook with the
/// relaxation time tau (viscosity (tau - 1/2) / 3), then streaming into the other lattice. Cells
/// are 19 doubles one behind the other.
template <class R>
void lattice_step(const View<double, R>& from, const View<double, R>& to, std::size_t n,
                  double tau) {
  constexpr std::size_t directions = D3Q19::directions;
  const auto wrapped = [n](std::size_t at, int by) {
    return by < 0 ? (at == 0 ? n - 1 : at - 1) : by > 0 ? (at + 1 == n ? 0 : at + 1) : at;
  };
  for (std::size_t z = 0; z < n; ++z)
    for (std::size_t y = 0; y < n; ++y)
      for (std::size_t x = 0; x < n; ++x) {
        const std::size_t cell = ((z * n + y) * n + x) * directions;
        std::array<double, directions> f;
        double density = 0;
        std::array<double, 3> u{};
        for (std::size_t q = 0; q < directions; ++q) {
          f[q] = from.get(cell + q);
          density += f[q];
          for (std::size_t axis = 0; axis < 3; ++axis)
            u[axis] += f[q] * D3Q19::velocity[q][axis];
        }
        for (double& component : u)
          component /= density;
        for (std::size_t q = 0; q < directions; ++q) {
          const std::array<int, 3>& e = D3Q19::velocity[q];
          const std::size_t target =
              (wrapped(z, e[2]) * n + wrapped(y, e[1])) * n + wrapped(x, e[0]);
          to.set(target * directions + q, f[q] - (f[q] - equilibrium(q, density, u)) / tau);
        }
      }
}

} // namespace nearfar::bench
