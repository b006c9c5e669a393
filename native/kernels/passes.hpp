// Five passes over a vector, each a loop of its own that reads all of it.
//
// Sums are kept by chunks of a fixed size, each added up in a fixed order, so that the result has
// the same bits whichever thread worked on which chunk.
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

/// All five passes over chunks [first, end) of a vector; chunks[i] gets what chunk i holds. The
/// last chunk may be short. `pacer` is charged with every chunk of every pass.
void analyze_chunks(const double* x, std::size_t elements, std::size_t first, std::size_t end,
                    Analysis* chunks, Pacer& pacer);

/// What the chunks hold together, in their order; there is at least one.
Analysis combine(const std::vector<Analysis>& chunks);

} // namespace nearfar::kernels
