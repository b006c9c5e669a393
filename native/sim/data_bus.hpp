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

#include "sim/device.hpp"

namespace nearfar::sim {

/// Converts times to whole clocks, without a division.
class ClockCount {
public:
  explicit ClockCount(Time clock) : clock_(clock), per_ps_(~std::uint64_t{0} / clock + 1) {}

  /// The number of the first clock that does not begin before `at`.
  std::uint64_t from(Time at) const {
    if (per_ps_ == 0) return at; // clocks of 1 ps: 2^64 does not fit
    __extension__ using Wide = unsigned __int128;
    // floor(at / clock), or one more: per_ps_ is too large by less than 1.
    const auto clock = static_cast<std::uint64_t>((static_cast<Wide>(at) * per_ps_) >> 64);
    return clock + (clock * clock_ < at);
  }

private:
  Time clock_;
  std::uint64_t per_ps_; ///< 2^64 / clock, rounded up
};

class DataBus {
public:
  explicit DataBus(const Device& device)
      : clock_(device.timing.clock), clocks_(clock_), ranks_(device.organization.ranks),
        maps_a_word_(
            static_cast<unsigned>(std::bit_width(ranks_ * (1 + device.organization.groups) - 1))),
        maps_(words << maps_a_word_), group_free_(ranks_ * device.organization.groups) {
    const Timing& t = device.timing;
    follows_.clocks = clocks_.from(std::max(t.burst, t.tCCD));
    turns_.clocks = clocks_.from(std::max(t.burst + t.tRTRS, t.tCCD));
    of_group_[0].clocks = clocks_.from(t.tCCDL);
    of_group_[1].clocks = clocks_.from(t.tCCDLWR);
    has_groups_ = std::max(of_group_[0].clocks, of_group_[1].clocks) > follows_.clocks;
    margin_ = std::max({turns_.clocks, of_group_[0].clocks, of_group_[1].clocks});
    has_masks_ = margin_ <= 32;
    move_to(0);
    for (Distance* distance : {&follows_, &turns_, &of_group_[0], &of_group_[1]})
      if (has_masks_ && distance->clocks > 0)
        distance->mask = ~std::uint64_t{0} >> (65 - 2 * distance->clocks)
                                                  << (margin_ - distance->clocks);
  }

  /// Reserves the data of an access and returns when they begin: at or after `at`, which may be up
  /// to 4096 clocks before the latest reservation. `group`: number in the channel.
  Time book(Time at, std::uint32_t rank, std::uint32_t group, bool write) {
    const std::uint64_t from = std::max(clocks_.from(at) + margin_, first_);
    const bool joins = continues_run(from, rank, group);
    const std::uint64_t begin = joins ? run_next_ : book_any(from, rank, group, write);
    if (joins) append(group, write);
    return (begin - margin_) * clock_;
  }

private:
  static constexpr std::uint64_t words = 128;
  static constexpr std::uint64_t size = words * 64; ///< in clocks

  /// The minimum distance between two begins of data.
  struct Distance {
    std::uint64_t clocks = 0;
    /// The clocks that one begin blocks, from margin_ - 1 clocks before it on.
    std::uint64_t mask = 0;
  };

  /// Whether the data of an access from `from` on directly follow those of the run.
  bool continues_run(std::uint64_t from, std::uint32_t rank, std::uint32_t group) const {
    return from >= run_from_ && from <= run_next_ && rank == run_rank_ &&
           group_free_[group] <= run_next_ && run_next_ < last_;
  }

  void append(std::uint32_t group, bool write) {
    group_free_[group] = run_next_ + of_group_[write].clocks;
    run_next_ += follows_.clocks;
    pending_[pending_count_++] = group << 1 | static_cast<std::uint32_t>(write);
    if (pending_count_ == pending_.size()) [[unlikely]]
      enter_pending();
  }

  /// Enters the pending reservations into the maps.
  [[gnu::noinline]] void enter_pending() {
    std::uint64_t begin = run_next_ - pending_count_ * follows_.clocks;
    const std::uint64_t last = run_next_ - follows_.clocks;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const std::uint64_t apart = (rank == run_rank_ ? follows_ : turns_).clocks;
      block_all(rank, begin - (apart - 1), last + apart);
    }
    for (std::size_t i = 0; has_groups_ && i < pending_count_; ++i, begin += follows_.clocks)
      words_around(begin).block(ranks_ + (pending_[i] >> 1), of_group_[pending_[i] & 1].mask);
    pending_count_ = 0;
  }

  /// Reserves by the maps.
  [[gnu::noinline]] std::uint64_t book_any(std::uint64_t from, std::uint32_t rank,
                                           std::uint32_t group, bool write) {
    if (pending_count_ > 0) enter_pending();
    const std::uint64_t begin = first_free(from, rank, ranks_ + group);
    if (!has_masks_) [[unlikely]] {
      block_far(begin, rank, ranks_ + group, write);
      return begin;
    }
    const Around around = words_around(begin);
    const std::uint64_t masks[2] = {turns_.mask, follows_.mask}; // no branch on random ranks
    for (std::size_t other = 0; other < ranks_; ++other)
      around.block(other, masks[other == rank]);
    if (has_groups_) around.block(ranks_ + group, of_group_[write].mask);
    group_free_[group] = std::max(group_free_[group], begin + of_group_[write].clocks);
    if (begin < run_next_) return begin; // before or in the run
    if (begin > run_next_ || rank != run_rank_) run_from_ = begin;
    run_rank_ = rank;
    run_next_ = begin + follows_.clocks;
    return begin;
  }

  /// Word `number` of all maps.
  std::uint64_t* word(std::uint64_t number) { return &maps_[number % words << maps_a_word_]; }

  /// Clocks count from margin_, so that no distance reaches back behind 0.
  std::uint64_t first_free(std::uint64_t clock, std::size_t rank, std::size_t group) {
    for (;;) {
      if (clock >= last_) [[unlikely]]
        forget_before(clock);
      const std::uint64_t* maps = word(clock / 64);
      const std::uint64_t blocked = has_groups_ ? maps[rank] | maps[group] : maps[rank];
      const std::uint64_t free = ~blocked >> (clock % 64);
      if (free) [[likely]]
        return clock + static_cast<unsigned>(std::countr_zero(free));
      clock += 64 - clock % 64;
    }
  }

  /// The words of the maps from margin_ - 1 clocks before a begin of data on.
  struct Around {
    std::uint64_t* low;
    std::uint64_t* high;
    unsigned shift;

    void block(std::size_t map, std::uint64_t mask) const {
      low[map] |= mask << shift;
      high[map] |= mask >> 1 >> (63 - shift);
    }
  };
  Around words_around(std::uint64_t begin) {
    const std::uint64_t from = begin - (margin_ - 1);
    return {word(from / 64), word(from / 64 + 1), static_cast<unsigned>(from % 64)};
  }

  /// Blocks the clocks from `from` to `to`, exclusive.
  void block_all(std::size_t map, std::uint64_t from, std::uint64_t to) {
    for (; from < to; from = (from / 64 + 1) * 64) {
      const std::uint64_t bits = std::min(to - from, 64 - from % 64);
      word(from / 64)[map] |= ~std::uint64_t{0} >> (64 - bits) << (from % 64);
    }
  }

  /// Blocks all clocks that are too near to `begin`, with distances that do not fit into a mask.
  void block_far(std::uint64_t begin, std::size_t rank, std::size_t group, bool write) {
    const auto add = [&](std::size_t map, const Distance& distance) {
      for (std::uint64_t clock = begin - (distance.clocks - 1); clock < begin + distance.clocks;
           ++clock)
        word(clock / 64)[map] |= std::uint64_t{1} << (clock % 64);
    };
    for (std::size_t other = 0; other < ranks_; ++other)
      add(other, other == rank ? follows_ : turns_);
    if (has_groups_) add(group, of_group_[write]);
  }

  /// Moves the maps so that `clock` is in their middle.
  [[gnu::noinline]] void forget_before(std::uint64_t clock) {
    const std::uint64_t base = (clock - size / 2) / 64 * 64;
    for (std::uint64_t at = base_; at < std::min(base, base_ + size); at += 64)
      std::fill_n(word(at / 64), std::size_t{1} << maps_a_word_, 0);
    move_to(base);
  }

  void move_to(std::uint64_t base) {
    base_ = base;
    first_ = base + margin_;
    last_ = base + size - 64 - margin_; // a begin in the word of a clock may block later ones
  }

  Time clock_;
  ClockCount clocks_;
  std::size_t ranks_;
  bool has_groups_ = false;          ///< whether groups limit data more than ranks do
  bool has_masks_ = false;           ///< whether all distances fit into a mask
  std::uint64_t margin_ = 0;         ///< the largest distance, in clocks
  std::uint64_t base_ = 0;           ///< earliest clock of the maps; a multiple of 64
  std::uint64_t first_ = 0;          ///< earliest clock at which data can begin
  std::uint64_t last_ = 0;           ///< the maps are moved if data shall begin from here on
  Distance follows_;                 ///< to data of the same rank
  Distance turns_;                   ///< to data of another rank
  std::array<Distance, 2> of_group_; ///< to data of the same group: from reads, from writes
  unsigned maps_a_word_;             ///< their number, as a power of two

  // The run: the latest reservations, if they are of one rank and follow each other without a gap.
  // Data that continue it are entered into the maps later, many at once.
  std::uint64_t run_from_ = ~std::uint64_t{0}; ///< begin of its first data
  std::uint64_t run_next_ = 0;                 ///< end of its last data
  std::uint32_t run_rank_ = 0;
  std::uint32_t pending_count_ = 0;
  std::array<std::uint32_t, 32> pending_{}; ///< the last data of the run: group << 1 | write

  /// A word of each rank's map, then of each group's map (of all ranks), then the next word of each.
  /// A bit is a clock; a ring of `size` clocks.
  std::vector<std::uint64_t> maps_;
  std::vector<std::uint64_t> group_free_; ///< by group: the clock from which on it blocks no data
};

} // namespace nearfar::sim
