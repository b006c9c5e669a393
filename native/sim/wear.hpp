// How often each line of a memory was written: as often as a write reached the device.
//
// Thread safety  none.
#pragma once

#include <cstdint>
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
    if (line < writes_.size()) __builtin_prefetch(&writes_[line], 1);
  }

  void write(std::uint64_t line) {
    if (line >= writes_.size()) [[unlikely]]
      writes_.resize((line + 1) + line / 2);
    ++writes_[line];
  }

  Worn summary() const {
    Worn worn;
    std::uint64_t of_page = 0;
    for (std::size_t i = 0; i < writes_.size(); ++i) {
      if (i % lines_a_page == 0) of_page = 0;
      if (writes_[i] == 0) continue;
      worn.pages += of_page == 0;
      of_page += writes_[i];
      ++worn.lines;
      if (writes_[i] > worn.most_line) worn.most_line = writes_[i];
      if (of_page > worn.most_page) worn.most_page = of_page;
    }
    return worn;
  }

private:
  std::vector<std::uint32_t> writes_; ///< by line
};

} // namespace nearfar::sim
