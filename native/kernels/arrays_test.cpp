#include "kernels/arrays.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <memory>
#include <string>

#include "test_support.hpp"

using namespace nearfar;
using kernels::ArrayKernel;
using kernels::Slice;

namespace {

constexpr double canary = -77.25;
constexpr std::size_t margin = 16; // elements after the slice that no loop may touch

/// Three arrays on cache lines with different contents, canaries behind each.
struct Arrays {
  explicit Arrays(std::size_t count) : elements(count) {
    for (auto& array : arrays) {
      const std::size_t bytes = (elements + margin + 7) / 8 * 64;
      array.reset(static_cast<double*>(std::aligned_alloc(64, bytes)));
      std::fill_n(array.get() + elements, margin, canary);
    }
    for (std::size_t i = 0; i < elements; ++i) {
      const auto x = static_cast<double>(i);
      arrays[0].get()[i] = 1.5 + x;
      arrays[1].get()[i] = 2.25 - 0.5 * x;
      arrays[2].get()[i] = std::sqrt(x);
    }
  }
  Slice slice() const {
    return {arrays[0].get(), arrays[1].get(), arrays[2].get(), elements, 0.75};
  }
  bool canaries_live() const {
    return std::ranges::all_of(arrays, [&](const auto& array) {
      return std::all_of(array.get() + elements, array.get() + elements + margin,
                         [](double x) { return x == canary; });
    });
  }

  struct Free {
    void operator()(double* p) const { std::free(p); }
  };
  std::size_t elements;
  std::unique_ptr<double, Free> arrays[3];
};

/// The closed form of a kernel, element by element. Returns what run() must return.
std::uint64_t naive(const ArrayKernel& kernel, const Slice& x) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < x.elements; ++i) {
    if (kernel.stored_bytes == 0) sum += std::bit_cast<std::uint64_t>(x.a[i]);
    kernel.follow(x.a[i], x.b[i], x.c[i], x.s);
  }
  return sum;
}

void compare(const ArrayKernel& kernel, std::size_t elements) {
  const Arrays timed(elements);
  const Arrays plain(elements);
  CHECK(kernel.run(timed.slice()) == naive(kernel, plain.slice()));
  for (std::size_t array = 0; array < 3; ++array)
    for (std::size_t i = 0; i < elements; ++i) {
      const double wanted = plain.arrays[array].get()[i];
      // A fused multiply-add may differ in the last place.
      REQUIRE(std::abs(timed.arrays[array].get()[i] - wanted) <= 1e-15 * std::abs(wanted) + 1e-15);
    }
  CHECK(timed.canaries_live());
}

} // namespace

TEST_CASE("all kernels do what the plain loop does, at every size and tail") {
  for (const ArrayKernel& kernel : kernels::array_kernels()) {
    CAPTURE(kernel.name);
    for (std::size_t elements = 0; elements <= 40; ++elements)
      compare(kernel, elements);
    for (const std::size_t elements : {63u, 64u, 65u, 999u, 1000u, 4096u, 4099u})
      compare(kernel, elements);
  }
}

TEST_CASE("closed forms are those of STREAM") {
  const auto after = [](const char* name) {
    std::array<double, 3> x = {3, 5, 7};
    kernels::find_array_kernel(name)->follow(x[0], x[1], x[2], 2);
    return x;
  };
  using Three = std::array<double, 3>;
  CHECK(after("read") == Three{3, 5, 7});
  CHECK(after("write") == Three{2, 5, 7});
  CHECK(after("ntwrite") == Three{2, 5, 7});
  CHECK(after("copy") == Three{3, 5, 3});
  CHECK(after("scale") == Three{3, 14, 7});
  CHECK(after("add") == Three{3, 5, 8});
  CHECK(after("triad") == Three{19, 5, 7});
}

TEST_CASE("the sum of read changes with any element") {
  constexpr std::size_t elements = 77;
  const ArrayKernel* read = kernels::find_array_kernel("read");
  REQUIRE(read != nullptr);
  for (std::size_t i = 0; i < elements; ++i) {
    const Arrays arrays(elements);
    const std::uint64_t before = read->run(arrays.slice());
    arrays.arrays[0].get()[i] += 0.125;
    CHECK(read->run(arrays.slice()) != before);
  }
}

TEST_CASE("kernels are found by name, and count bytes as STREAM does") {
  const auto counted = [](const char* name) {
    const ArrayKernel* kernel = kernels::find_array_kernel(name);
    REQUIRE(kernel != nullptr);
    return kernel->loaded_bytes + kernel->stored_bytes;
  };
  CHECK(counted("read") == 8);
  CHECK(counted("write") == 8);
  CHECK(counted("ntwrite") == 8);
  CHECK(counted("copy") == 16);
  CHECK(counted("scale") == 16);
  CHECK(counted("add") == 24);
  CHECK(counted("triad") == 24);
  CHECK(kernels::array_kernels().size() >= 7);
  CHECK(kernels::find_array_kernel("nothing") == nullptr);
}

TEST_CASE("no kernel is optimized away: eight times the elements take far longer" *
          test::needs_idle_machine) {
  constexpr std::size_t few = 4096;
  const Arrays small(few);
  const Arrays large(8 * few);
  for (const ArrayKernel& kernel : kernels::array_kernels()) {
    CAPTURE(kernel.name);
    const auto time = [&](const Arrays& arrays) {
      return test::shortest_ns([&] {
        for (int i = 0; i < 50; ++i)
          kernel.run(arrays.slice());
      });
    };
    const auto once = time(small);
    CHECK(once > 50 * few * 8 / 1000); // 1000 bytes a nanosecond: beyond any processor's caches
    CHECK(time(large) > 3 * once);
  }
}
