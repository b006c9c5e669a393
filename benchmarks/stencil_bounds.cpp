// The stencil's loops against a copy, and against bounds of their own. Build and run: see
// benchmarks/stencil_bounds.sh.
//
// A bound touches the lines that a loop touches, in the same order and with the same prefetches, and
// does nothing else that can be left out: two rows are copied at a time, or three planes are added.
// So it shows what the access pattern costs on this machine; the rest is arithmetic.
//
// One thread, arrays of 128 MiB, rounds that take turns; a ratio is taken within each round, and the
// median of the rounds is printed with its 95 % interval (order statistics).
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "kernels/arrays.hpp"
#include "kernels/stencil.hpp"

using namespace nearfar;

namespace {

constexpr int rounds = 31;
constexpr std::size_t width = 128, plane = width * width, planes = 1024;
constexpr std::size_t elements = plane * planes;
using Vector = double __attribute__((vector_size(64)));

Vector load(const double* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
void store(double* to, const Vector& v) { std::memcpy(to, &v, sizeof v); }
constexpr std::size_t lanes = sizeof(Vector) / sizeof(double);

/// As kernels::stencil_two_rows.
void copy_two_rows(const double* in, double* out, std::size_t columns) {
  for (std::size_t i = 0; i < columns; i += lanes) {
    __builtin_prefetch(in + i + 256, 0, 3);
    __builtin_prefetch(in + columns + i + 256, 0, 3);
    store(out + i, load(in + i));
    store(out + columns + i, load(in + columns + i));
  }
}

/// As kernels::stencil_row.
void add_three_rows(const double* in, double* out, std::size_t columns) {
  for (std::size_t i = 0; i < columns; i += lanes) {
    __builtin_prefetch(in + 2 * columns + i, 0, 2);
    store(out + i, load(in - columns + i) + load(in + i) + load(in + columns + i));
  }
}

/// As kernels::seven_point_plane.
void add_three_planes(const double* in, double* out) {
  for (std::size_t i = 0; i < plane; i += lanes) {
    __builtin_prefetch(in + plane + i + 512, 0, 3);
    __builtin_prefetch(out + i + 256, 1, 3);
    store(out + i, load(in - plane + i) + load(in + i) + load(in + plane + i));
  }
}

struct Side {
  const char* name;
  std::function<void()> sweep;
  std::vector<double> ms;
};

void measure(Side& side) {
  const auto start = std::chrono::steady_clock::now();
  side.sweep();
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  side.ms.push_back(spent.count());
}

/// From two planes into the array on, at the start of a cache line: vectors that cross lines are slow.
double* inner(std::vector<double>& array) {
  const auto at = reinterpret_cast<std::uintptr_t>(array.data() + 2 * plane);
  return reinterpret_cast<double*>((at + 63) / 64 * 64);
}

/// Median and the 95 % interval of the median: ranks n/2 -+ 0.98 sqrt(n).
std::array<double, 3> middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const auto reach = static_cast<std::size_t>(0.98 * std::sqrt(static_cast<double>(n)) + 1);
  return {values[n / 2], values[n / 2 - reach], values[n / 2 + reach]};
}

void print_ratio(const Side& loop, const Side& reference) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < loop.ms.size(); ++i)
    ratios.push_back(reference.ms[i] / loop.ms[i]);
  const auto [m, low, high] = middle(ratios);
  std::printf("| %s | %s | %.1f | %.1f | %.3f [%.3f, %.3f] |\n", loop.name, reference.name,
              2 * 8e-6 * elements / middle(loop.ms)[0],
              2 * 8e-6 * elements / middle(reference.ms)[0], m, low, high);
}

} // namespace

int main() {
  std::vector<double> first(elements + 5 * plane), second(elements + 5 * plane);
  for (std::size_t i = 0; i < first.size(); ++i)
    first[i] = static_cast<double>(i % 7);
  const double* in = inner(first);
  double* out = inner(second);
  kernels::Slice slice{};
  slice.a = const_cast<double*>(in);
  slice.c = out;
  slice.elements = elements;
  const auto each_row = [&](std::size_t columns, std::size_t step, auto sweep) {
    for (std::size_t at = 0; at + step * columns <= elements; at += step * columns)
      sweep(in + at, out + at, columns);
  };
  const auto two_rows = [](const double* x, double* y, std::size_t n) {
    kernels::stencil_two_rows({x - n, x, x + n, x + 2 * n}, {y, y + n}, n);
  };
  const auto one_row = [](const double* x, double* y, std::size_t n) {
    kernels::stencil_row(x - n, x, x + n, y, n);
  };
  std::array<Side, 7> sides{{
      {"copy", [&] { kernels::find_array_kernel("copy")->run(slice); }, {}},
      {"stencil, rows of 8192", [&] { each_row(8192, 2, two_rows); }, {}},
      {"two rows copied at a time", [&] { each_row(8192, 2, copy_two_rows); }, {}},
      {"stencil, rows of 1024", [&] { each_row(1024, 1, one_row); }, {}},
      {"three rows of 1024 added", [&] { each_row(1024, 1, add_three_rows); }, {}},
      {"seven points, planes of 128 x 128",
       [&] {
         for (std::size_t at = 0; at < elements; at += plane)
           kernels::seven_point_plane(in + at - plane, in + at, in + at + plane, out + at, plane,
                                      width);
       },
       {}},
      {"three planes of 128 x 128 added",
       [&] {
         for (std::size_t at = 0; at < elements; at += plane)
           add_three_planes(in + at, out + at);
       },
       {}},
  }};
  for (int round = -1; round < rounds; ++round)
    for (Side& side : sides) {
      measure(side);
      if (round < 0) side.ms.clear(); // pages are touched
    }
  std::printf("| loop | reference | GB/s | reference, GB/s | ratio |\n|---|---|---|---|---|\n");
  for (std::size_t i = 1; i < sides.size(); i += 2) {
    print_ratio(sides[i], sides[0]);
    print_ratio(sides[i + 1], sides[0]);
    print_ratio(sides[i], sides[i + 1]);
  }
}
