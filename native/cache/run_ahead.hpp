// A prefetcher that runs ahead of streams: for times of loads, where StreamPrefetcher is for
// counts.
//
// Rule           two misses of neighboring lines in a page, one after the other, are a stream: the
//                next lines in its direction are brought in, across pages. The line just beyond
//                them is expected: it comes in unasked as well, and the stream goes on with twice
//                as many, up to `most`. A page has one place in a table of `streams` pages.
// Source         that long streams wait for nothing, as the prefetchers of x86 processors are built
//                to have it, is the assumption of this model; distances are not published.
// Thread safety  none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cache/hierarchy.hpp"

namespace nearfar::cache {

class RunAhead final : public Prefetcher {
public:
  /// `most`: lines brought in at once, at least `fewest`.
  explicit RunAhead(unsigned most) : most_(most) {}
  void missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) override;

  /// The line just beyond a stream.
  bool expects(std::uint64_t line) const override;

  static constexpr unsigned fewest = 16;
  static constexpr unsigned streams = 32;
  static constexpr unsigned page_lines = 64;

private:
  struct Stream {
    std::uint64_t page = ~std::uint64_t{0};
    std::uint64_t last = 0;  ///< line that missed, or the last one brought in
    unsigned ahead = fewest; ///< lines to bring in next
    bool runs = false;       ///< whether lines were brought in, or one missed
  };
  Stream& of_page(std::uint64_t page) { return known_[page % streams]; }

  unsigned most_;
  std::array<Stream, streams> known_;
};

} // namespace nearfar::cache
