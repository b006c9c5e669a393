// Windows of a long run, whose records are kept: one block each, at even distances.
//
// Rule           the run is cut into slots of `block_records` records. All slots are kept until
//                they hold more than `most`; then every other one, and so on by halves.
//                `ThinnedTrace` drops by the same rule what was kept too densely at first.
// Source         systematic sampling: Wunderlich et al., "SMARTS", ISCA 2003; the caches before it
//                see every access, so that none is cold.
// Thread safety  values.
#pragma once

#include <cstdint>

#include "trace/format.hpp"

namespace nearfar::trace {

class Windows {
public:
  /// `max_records` 0: all are kept.
  explicit Windows(std::uint64_t max_records) : most_(max_records) {}

  /// Whether the next record is kept.
  bool open() const { return slot_ % every_ == 0; }
  /// One slot in so many is kept now.
  std::uint64_t every() const { return every_; }

  /// Counts a record, kept or left out. Returns true if a window opens after it.
  bool add_record() {
    if (++in_slot_ < block_records) return false;
    in_slot_ = 0;
    if (open()) keep();
    ++slot_;
    return open();
  }

private:
  void keep() {
    ++kept_;
    while (most_ != 0 && kept_ > 1 && kept_ * block_records > most_) {
      every_ *= 2;
      kept_ = (kept_ + 1) / 2;
    }
  }

  std::uint64_t most_;
  std::uint64_t every_ = 1;
  std::uint64_t slot_ = 0;
  std::uint64_t in_slot_ = 0;
  std::uint64_t kept_ = 0; ///< slots, at today's distance
};

} // namespace nearfar::trace
