// The stream prefetcher of second-level caches.
//
// Model          follows up to `streams` pages, and replaces the least recently used one. Two
//                consecutive accesses to adjacent lines start a stream in their direction. Each
//                further access in this direction prefetches the lines up to `depth` ahead, within
//                the page.
// Source         Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data Prefetch to
//                L2 and Last Level Cache" (streamer: 32 streams, one per page, either direction);
//                depth and training are simplified.
// Thread safety  none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cache/hierarchy.hpp"

namespace nearfar::cache {

class StreamPrefetcher final : public Prefetcher {
public:
  explicit StreamPrefetcher(unsigned line_bytes, unsigned depth = 8);

  /// Call for every access of the level, because hits continue a stream, too.
  void missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) override;

private:
  static constexpr unsigned streams = 32;
  static constexpr unsigned page_bytes = 4096;

  struct Stream {
    std::uint64_t last = 0;  ///< last accessed line
    std::uint64_t ahead = 0; ///< last prefetched line
    std::int64_t direction = 0;
    unsigned char newer = 0; ///< next entries in the order of use
    unsigned char older = 0;
  };

  unsigned stream_of(std::uint64_t page);
  unsigned find(std::uint64_t page) const;
  void make_newest(unsigned number);

  alignas(16) std::array<std::uint64_t, streams> pages_; ///< in a row, to be compared at once
  std::array<Stream, streams> table_;
  unsigned newest_ = 0;
  unsigned oldest_ = streams - 1;
  unsigned lines_shift_; ///< from a line to its page
  std::int64_t depth_;
};

} // namespace nearfar::cache
