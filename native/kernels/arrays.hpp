// Loops over arrays of doubles: read, write, ntwrite, copy, scale, add, triad.
//
// A kernel is a row of the table in arrays.cpp: its name, the arrays and bytes per element that it
// loads and stores (as STREAM counts them, without write-allocate), its loop, and the function that
// computes the expected elements. Every row is tested and paced, and `probe` measures all that it
// does not skip. Loops are dispatched at run time to AVX-512, AVX2 or SSE2. A loop accesses only its
// slice, so threads share nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nearfar::kernels {

/// The slice one thread works on. Arrays start on a cache line. `s` is the scalar of STREAM.
struct Slice {
  double* a;
  double* b;
  double* c;
  std::size_t elements;
  double s;
};

struct ArrayKernel {
  const char* name;
  const char* reads;     ///< letters of the arrays that it loads
  char writes;           ///< letter of the array that it stores to, or '-'
  unsigned loaded_bytes; ///< per element
  unsigned stored_bytes; ///< per element
  bool allocates;        ///< stored lines are read first (write-allocate); these bytes do not count
  bool skipped_by_probe; ///< benchmarks alone measure it, such as `bench stream`
  /// The loop. Returns the sum of the loaded words (unsigned, modulo 2^64), or 0 if it stores.
  std::uint64_t (*run)(const Slice&);
  /// Computes the expected elements of a, b and c after a pass from those before it. The results of
  /// `run` are compared with them. `s` is that of the slice.
  void (*follow)(double& a, double& b, double& c, double s);

  /// `index`: 0 for a, 1 for b, 2 for c.
  bool reads_array(std::size_t index) const;
  bool writes_array(std::size_t index) const { return writes == "abc"[index]; }
};

/// All kernels, in a fixed order.
std::span<const ArrayKernel> array_kernels();

/// By name, nullptr if there is none.
const ArrayKernel* find_array_kernel(const char* name);

} // namespace nearfar::kernels
