// A prefetcher that runs ahead of streams. It models times of loads; StreamPrefetcher models
// counts.
//
// Rule           two consecutive misses of adjacent lines in a page start a stream: the next lines
//                in its direction are prefetched, also across pages. An access to the line just
//                beyond them is not a miss, and continues the stream with twice as many lines, up
//                to `most`. A page has one entry in a table of `streams` pages.
// Source         an assumption: long streams do not wait, which is the aim of the prefetchers of
//                x86 CPUs. Their distances are not published.
// Thread safety  none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cache/hierarchy.hpp"

namespace nearfar::cache {

class RunAhead final : public Prefetcher {
public:
  /// `most`: maximum number of lines prefetched at once, at least `fewest`.
  explicit RunAhead(unsigned most) : most_(most) {}
  void missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) override;

  /// Whether this is the line just beyond a stream.
  bool expects(std::uint64_t line) const override;

  static constexpr unsigned fewest = 16;
  static constexpr unsigned streams = 32;
  static constexpr unsigned page_lines = 64;

private:
  struct Stream {
    std::uint64_t page = ~std::uint64_t{0};
    std::uint64_t last = 0;  ///< the line that missed, or the last prefetched one
    unsigned ahead = fewest; ///< number of lines to prefetch next
    bool runs = false;       ///< whether `last` was prefetched
  };
  Stream& of_page(std::uint64_t page) { return known_[page % streams]; }

  unsigned most_;
  std::array<Stream, streams> known_;
};

} // namespace nearfar::cache
