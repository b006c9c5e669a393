// Writes to each line of a memory. A write counts when it is sent to the device.
//
// Counters have one byte, so that those of 1 GiB of memory take 16 MiB. Overflows are kept in a
// map.
//
// Thread safety  none.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
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
      ++overflows_[line / lines_a_page][line % lines_a_page];
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
  using Overflows = std::array<std::uint64_t, lines_a_page>; ///< each counts for 256 writes

  void add(std::size_t chunk, WearSummary& wear) const {
    for (std::uint64_t page = 0; page < chunk_lines / lines_a_page; ++page) {
      const std::uint8_t* low = chunks_[chunk]->data() + page * lines_a_page;
      const Overflows* high = overflows_of(chunk * (chunk_lines / lines_a_page) + page);
      if (high == nullptr) [[likely]] // the sum of 64 bytes fits into 16 bits
        add_page<std::uint16_t>([&](unsigned line) { return low[line]; }, wear);
      else
        add_page<std::uint64_t>([&](unsigned line) { return low[line] + 256 * (*high)[line]; },
                                wear);
    }
  }

  const Overflows* overflows_of(std::uint64_t page) const {
    if (overflows_.empty()) return nullptr;
    const auto found = overflows_.find(page);
    return found == overflows_.end() ? nullptr : &found->second;
  }

  /// Adds a page whose lines have writes_of(line) writes. A short type of the sums makes it fast.
  template <std::unsigned_integral Sum, class WritesOf>
  static void add_page(const WritesOf& writes_of, WearSummary& wear) {
    Sum lines = 0;
    Sum of_page = 0;
    Sum max_line = 0;
    for (unsigned line = 0; line < lines_a_page; ++line) {
      const Sum writes = writes_of(line);
      lines = static_cast<Sum>(lines + (writes > 0));
      of_page = static_cast<Sum>(of_page + writes);
      max_line = std::max(max_line, writes);
    }
    wear.lines += lines;
    wear.pages += of_page > 0;
    wear.max_line = std::max<std::uint64_t>(wear.max_line, max_line);
    wear.max_page = std::max<std::uint64_t>(wear.max_page, of_page);
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;             ///< by line
  std::unordered_map<std::uint64_t, Overflows> overflows_; ///< by page; few pages have any
};

} // namespace nearfar::sim
