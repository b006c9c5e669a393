// How often each line of a memory was written: as often as a write reached the device.
//
// Thread safety  none.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/placement.hpp"

namespace nearfar::sim {

struct Worn {
  std::uint64_t lines = 0; ///< written at least once
  std::uint64_t pages = 0;
  std::uint64_t most_line = 0; ///< writes of the line written most often
  std::uint64_t most_page = 0; ///< of all lines of one page together
};

class Wear {
public:
  void prefetch(std::uint64_t line) const {
    const std::uint64_t chunk = line / chunk_lines;
    if (chunk < chunks_.size() && chunks_[chunk])
      __builtin_prefetch(&(*chunks_[chunk])[line % chunk_lines], 1);
  }

  void write(std::uint64_t line) {
    const std::uint64_t chunk = line / chunk_lines;
    if (chunk >= chunks_.size()) [[unlikely]]
      chunks_.resize(chunk + 1);
    if (!chunks_[chunk]) [[unlikely]]
      chunks_[chunk] = std::make_unique<Chunk>();
    ++(*chunks_[chunk])[line % chunk_lines];
  }

  Worn summary() const {
    Worn worn;
    for (const std::unique_ptr<Chunk>& chunk : chunks_)
      if (chunk) add(*chunk, worn);
    return worn;
  }

private:
  static constexpr std::uint64_t chunk_lines = std::uint64_t{4096} * lines_a_page;
  using Chunk = std::array<std::uint32_t, chunk_lines>;

  static void add(const Chunk& writes, Worn& worn) {
    std::uint64_t of_page = 0;
    for (std::size_t i = 0; i < chunk_lines; ++i) {
      if (i % lines_a_page == 0) of_page = 0;
      if (writes[i] == 0) continue;
      worn.pages += of_page == 0;
      of_page += writes[i];
      ++worn.lines;
      if (writes[i] > worn.most_line) worn.most_line = writes[i];
      if (of_page > worn.most_page) worn.most_page = of_page;
    }
  }

  std::vector<std::unique_ptr<Chunk>> chunks_; ///< by line
};

} // namespace nearfar::sim
