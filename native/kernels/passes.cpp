#include "kernels/passes.hpp"

#include <algorithm>
#include <cmath>

namespace nearfar::kernels {

namespace {

/// Folds a chunk in eight lanes, which vector units can keep apart, then the lanes in order.
template <class Each, class Join>
double fold(const double* x, std::size_t count, double start, const Each& each, const Join& join) {
  constexpr std::size_t lanes = 8;
  double lane[lanes];
  std::fill_n(lane, lanes, start);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t k = 0; k < lanes; ++k)
      lane[k] = join(lane[k], each(x, i + k));
  for (std::size_t k = 0; i < count; ++i, ++k)
    lane[k] = join(lane[k], each(x, i));
  double all = lane[0];
  for (std::size_t k = 1; k < lanes; ++k)
    all = join(all, lane[k]);
  return all;
}

struct Chunk {
  const double* x;
  std::size_t count;
  std::size_t steps; ///< neighbors to the right, that of the last element in the next chunk
};

Chunk chunk_at(const double* x, std::size_t elements, std::size_t index) {
  const std::size_t first = index * chunk_elements;
  const std::size_t count = std::min(chunk_elements, elements - first);
  return {x + first, count, first + count < elements ? count : count - 1};
}

constexpr auto value = [](const double* x, std::size_t i) { return x[i]; };
constexpr auto square = [](const double* x, std::size_t i) { return x[i] * x[i]; };
constexpr auto step = [](const double* x, std::size_t i) { return std::abs(x[i + 1] - x[i]); };
constexpr auto add = [](double a, double b) { return a + b; };
constexpr auto lower = [](double a, double b) { return b < a ? b : a; };
constexpr auto higher = [](double a, double b) { return a < b ? b : a; };

} // namespace

void analyze_chunks(const double* x, std::size_t elements, std::size_t first, std::size_t end,
                    Analysis* chunks, Pacer& pacer) {
  const auto pass = [&](double Analysis::*result, const auto& look) {
    for (std::size_t i = first; i < end; ++i) {
      const Chunk chunk = chunk_at(x, elements, i);
      chunks[i].*result = look(chunk);
      pacer.charge(chunk.count * sizeof(double), 0);
    }
  };
  pacer.start();
  pass(&Analysis::sum, [](const Chunk& c) { return fold(c.x, c.count, 0.0, value, add); });
  pass(&Analysis::smallest,
       [](const Chunk& c) { return fold(c.x, c.count, c.x[0], value, lower); });
  pass(&Analysis::largest,
       [](const Chunk& c) { return fold(c.x, c.count, c.x[0], value, higher); });
  pass(&Analysis::squares, [](const Chunk& c) { return fold(c.x, c.count, 0.0, square, add); });
  pass(&Analysis::step, [](const Chunk& c) { return fold(c.x, c.steps, 0.0, step, higher); });
}

Analysis combine(const std::vector<Analysis>& chunks) {
  Analysis all = chunks.front();
  for (std::size_t i = 1; i < chunks.size(); ++i) {
    all.sum += chunks[i].sum;
    all.squares += chunks[i].squares;
    all.smallest = lower(all.smallest, chunks[i].smallest);
    all.largest = higher(all.largest, chunks[i].largest);
    all.step = higher(all.step, chunks[i].step);
  }
  return all;
}

} // namespace nearfar::kernels
