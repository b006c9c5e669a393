// Reservations of the data bus of a channel, in any order of time.
//
// The fast engine times requests in program order. A slow request reserves the bus far ahead; a
// later request in program order may use the free time before it. Begins of data are whole clocks.
// A rank and a bank group each have a map of the clocks at which their data cannot begin.
//
// Thread safety  none.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/calendar.hpp"
#include "sim/device.hpp"

namespace nearfar::sim {

class DataBus {
public:
  explicit DataBus(const Device& device)
      : clock_(device.timing.clock), per_ps_(1.0 / static_cast<double>(clock_)),
        ranks_(device.organization.ranks),
        groups_(device.organization.ranks * device.organization.groups) {
    const Timing& t = device.timing;
    follows_ = distance(std::max(t.burst, t.tCCD));
    turns_ = distance(std::max(t.burst + t.tRTRS, t.tCCD));
    of_group_[0] = distance(t.tCCDL);
    of_group_[1] = distance(t.tCCDLWR);
    has_groups_ = std::max(of_group_[0].clocks, of_group_[1].clocks) > follows_.clocks;
    margin_ = std::max({turns_.clocks, of_group_[0].clocks, of_group_[1].clocks});
  }

  /// Reserves the data of an access and returns when they begin: at or after `at`, which may be up
  /// to 4096 clocks before the latest reservation. `group`: number in the channel.
  Time book(Time at, std::uint32_t rank, std::uint32_t group, bool write) {
    const std::uint64_t begin = first_free(clock_from(at), ranks_[rank], groups_[group]);
    for (Map& other : ranks_)
      block(other, begin, &other == &ranks_[rank] ? follows_ : turns_);
    if (has_groups_) block(groups_[group], begin, of_group_[write]);
    return (begin - margin_) * clock_;
  }

private:
  static constexpr std::uint64_t words = 128;
  static constexpr std::uint64_t size = words * 64; ///< in clocks
  using Map = std::array<std::uint64_t, words>;     ///< a ring; a bit is a clock

  /// The minimum distance between two begins of data.
  struct Distance {
    std::uint64_t clocks = 0;
    std::uint64_t mask = 0; ///< the clocks that one begin blocks; 0: more than fit into a word
  };

  Distance distance(Time time) const {
    const std::uint64_t clocks = (time + clock_ - 1) / clock_;
    return {clocks, clocks <= 32 ? ~std::uint64_t{0} >> (64 - (2 * clocks - 1)) : 0};
  }

  /// Clocks count from margin_, so that no distance reaches back behind 0.
  std::uint64_t clock_from(Time at) const {
    const std::uint64_t clock = slot_of(at, per_ps_);
    return std::max(clock + (clock * clock_ < at), base_) + margin_;
  }

  std::uint64_t first_free(std::uint64_t clock, const Map& rank, const Map& group) {
    for (;;) {
      if (clock + 64 + margin_ >= base_ + size) [[unlikely]] // a begin in this word may block more
        forget_before(clock);
      const std::uint64_t word = clock / 64 % words;
      const std::uint64_t blocked = rank[word] | (has_groups_ ? group[word] : 0);
      const unsigned bit = clock % 64;
      const auto skipped = static_cast<unsigned>(std::countr_one(blocked >> bit));
      if (bit + skipped < 64) return clock + skipped;
      clock += 64 - bit;
    }
  }

  /// Blocks all clocks that are nearer to `begin` than `distance`.
  static void block(Map& map, std::uint64_t begin, Distance distance) {
    const std::uint64_t from = begin - (distance.clocks - 1);
    if (distance.mask) [[likely]] {
      map[from / 64 % words] |= distance.mask << (from % 64);
      map[(from / 64 + 1) % words] |= distance.mask >> 1 >> (63 - from % 64);
      return;
    }
    for (std::uint64_t clock = from; clock < begin + distance.clocks; ++clock)
      map[clock / 64 % words] |= std::uint64_t{1} << (clock % 64);
  }

  /// Moves the maps so that `clock` is in their middle.
  void forget_before(std::uint64_t clock) {
    const std::uint64_t base = (clock - size / 2) / 64 * 64;
    for (std::vector<Map>* maps : {&ranks_, &groups_})
      for (Map& map : *maps)
        for (std::uint64_t at = base_; at < std::min(base, base_ + size); at += 64)
          map[at / 64 % words] = 0;
    base_ = base;
  }

  Time clock_;
  double per_ps_;
  Distance follows_;                 ///< to data of the same rank
  Distance turns_;                   ///< to data of another rank
  std::array<Distance, 2> of_group_; ///< to data of the same group: from reads, from writes
  bool has_groups_ = false;          ///< whether groups limit data more than ranks do
  std::uint64_t margin_ = 0;         ///< the largest distance, in clocks
  std::uint64_t base_ = 0;           ///< earliest clock of the maps; a multiple of 64
  std::vector<Map> ranks_;
  std::vector<Map> groups_; ///< of all ranks
};

} // namespace nearfar::sim
