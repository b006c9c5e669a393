// Writes to each line of a memory. A write counts when it is sent to the device.
//
// Counters have one byte, so that those of 1 GiB of memory take 16 MiB. Overflows are kept in a
// map.
//
// Thread safety  none.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/placement.hpp"

namespace nearfar::sim {

struct WearSummary {
  std::uint64_t lines = 0;    ///< number of lines with writes
  std::uint64_t pages = 0;    ///< number of pages with writes
  std::uint64_t max_line = 0; ///< maximum of writes to a line
  std::uint64_t max_page = 0; ///< maximum of writes to all lines of a page
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
    if (++(*chunks_[chunk])[line % chunk_lines] == 0) [[unlikely]]
      ++overflows_[line];
  }

  WearSummary summary() const {
    WearSummary wear;
    for (std::size_t i = 0; i < chunks_.size(); ++i)
      if (chunks_[i]) add(i, wear);
    return wear;
  }

private:
  static constexpr std::uint64_t chunk_lines = std::uint64_t{4096} * lines_a_page;
  using Chunk = std::array<std::uint8_t, chunk_lines>;

  std::uint64_t writes_of(std::uint64_t line) const {
    const std::uint64_t low = (*chunks_[line / chunk_lines])[line % chunk_lines];
    if (overflows_.empty()) return low;
    const auto high = overflows_.find(line);
    return high == overflows_.end() ? low : low + 256 * high->second;
  }

  void add(std::size_t chunk, WearSummary& wear) const {
    std::uint64_t of_page = 0;
    for (std::uint64_t i = 0; i < chunk_lines; ++i) {
      if (i % lines_a_page == 0) of_page = 0;
      const std::uint64_t writes = writes_of(chunk * chunk_lines + i);
      if (writes == 0) continue;
      wear.pages += of_page == 0;
      of_page += writes;
      ++wear.lines;
      if (writes > wear.max_line) wear.max_line = writes;
      if (of_page > wear.max_page) wear.max_page = of_page;
    }
  }

  std::vector<std::unique_ptr<Chunk>> chunks_; ///< by line
  /// Number of overflows (256 writes), by line.
  std::unordered_map<std::uint64_t, std::uint64_t> overflows_;
};

} // namespace nearfar::sim
