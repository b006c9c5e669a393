// Five passes over a vector. Each is a separate loop that reads the whole vector.
//
// Sums are computed for chunks of a fixed size in a fixed order. The result is therefore the same
// to the bit, independent of the assignment of chunks to threads.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/pace.hpp"

namespace nearfar::kernels {

inline constexpr std::size_t chunk_elements = 4096;
inline constexpr unsigned analysis_passes = 5;

struct Analysis {
  double sum = 0;
  double squares = 0;
  double smallest = 0;
  double largest = 0;
  double step = 0; ///< largest difference of neighbors

  bool operator==(const Analysis&) const = default;
};

/// All five passes over chunks [first, end) of a vector. Writes the result of chunk i to chunks[i].
/// The last chunk may be shorter. `pacer` is charged with every chunk of every pass.
void analyze_chunks(const double* x, std::size_t elements, std::size_t first, std::size_t end,
                    Analysis* chunks, Pacer& pacer);

/// The result of all chunks, combined in their order; there must be at least one.
Analysis combine(const std::vector<Analysis>& chunks);

} // namespace nearfar::kernels
