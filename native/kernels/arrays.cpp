#include "kernels/arrays.hpp"

#include <cstring>
#include <emmintrin.h>

#include "kernels/dispatch.hpp"

namespace nearfar::kernels {

namespace {

using Word [[gnu::may_alias]] = std::uint64_t;

// The sum is returned and compared with what the array holds, so no load can be left out.
NEARFAR_DISPATCH std::uint64_t read(const Slice& x) {
  const Word* a = reinterpret_cast<const Word*>(x.a);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < x.elements; ++i)
    sum += a[i];
  return sum;
}

// Stores of a constant could be merged across calls by a compiler that inlined them; the barrier
// says that the memory is looked at afterwards.
void publish(const double* written) { asm volatile("" : : "r"(written) : "memory"); }

NEARFAR_DISPATCH std::uint64_t write(const Slice& x) {
  double* a = x.a;
  const double s = x.s;
  for (std::size_t i = 0; i < x.elements; ++i)
    a[i] = s;
  publish(a);
  return 0;
}

std::uint64_t ntwrite(const Slice& x) {
  const __m128d s = _mm_set1_pd(x.s);
  std::size_t i = 0;
  for (; i + 8 <= x.elements; i += 8) { // a whole line, so that it leaves its buffer in one piece
    _mm_stream_pd(x.a + i, s);
    _mm_stream_pd(x.a + i + 2, s);
    _mm_stream_pd(x.a + i + 4, s);
    _mm_stream_pd(x.a + i + 6, s);
  }
  for (; i < x.elements; ++i)
    x.a[i] = x.s;
  _mm_sfence();
  return 0;
}

NEARFAR_DISPATCH std::uint64_t copy(const Slice& x) {
  const double* __restrict a = x.a;
  double* __restrict c = x.c;
  for (std::size_t i = 0; i < x.elements; ++i)
    c[i] = a[i];
  publish(c);
  return 0;
}

NEARFAR_DISPATCH std::uint64_t scale(const Slice& x) {
  double* __restrict b = x.b;
  const double* __restrict c = x.c;
  const double s = x.s;
  for (std::size_t i = 0; i < x.elements; ++i)
    b[i] = s * c[i];
  publish(b);
  return 0;
}

NEARFAR_DISPATCH std::uint64_t add(const Slice& x) {
  const double* __restrict a = x.a;
  const double* __restrict b = x.b;
  double* __restrict c = x.c;
  for (std::size_t i = 0; i < x.elements; ++i)
    c[i] = a[i] + b[i];
  publish(c);
  return 0;
}

NEARFAR_DISPATCH std::uint64_t triad(const Slice& x) {
  double* __restrict a = x.a;
  const double* __restrict b = x.b;
  const double* __restrict c = x.c;
  const double s = x.s;
  for (std::size_t i = 0; i < x.elements; ++i)
    a[i] = b[i] + s * c[i];
  publish(a);
  return 0;
}

void unchanged(double&, double&, double&, double) {}
void fills_a(double& a, double&, double&, double s) { a = s; }
void copies(double& a, double&, double& c, double) { c = a; }
void scales(double&, double& b, double& c, double s) { b = s * c; }
void adds(double& a, double& b, double& c, double) { c = a + b; }
void multiplies_and_adds(double& a, double& b, double& c, double s) { a = b + s * c; }

constexpr ArrayKernel kernels[] = {
    {"read", "a", '-', 8, 0, false, false, read, unchanged},
    {"write", "", 'a', 0, 8, true, false, write, fills_a},
    {"ntwrite", "", 'a', 0, 8, false, false, ntwrite, fills_a},
    {"copy", "a", 'c', 8, 8, true, false, copy, copies},
    {"scale", "c", 'b', 8, 8, true, true, scale, scales},
    {"add", "ab", 'c', 16, 8, true, true, add, adds},
    {"triad", "bc", 'a', 16, 8, true, true, triad, multiplies_and_adds},
};

} // namespace

bool ArrayKernel::reads_array(std::size_t index) const {
  return std::strchr(reads, "abc"[index]) != nullptr;
}

std::span<const ArrayKernel> array_kernels() { return kernels; }

const ArrayKernel* find_array_kernel(const char* name) {
  for (const ArrayKernel& k : kernels)
    if (std::strcmp(k.name, name) == 0) return &k;
  return nullptr;
}

} // namespace nearfar::kernels
