// The prefetcher that processors have at their second level: runs along streams.
//
// Model          up to `streams` pages are followed, the least recently used goes; two accesses in
//                a row to neighbouring lines, in one direction, make a stream; from then on each
//                access that goes on asks for the lines up to `depth` ahead of it, within the page.
// Source         Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data Prefetch to
//                L2 and Last Level Cache" (streamer: 32 streams, one a page, either direction);
//                depth and training are our simplification.
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

  /// To be told of every access of the level, so that a stream does not end where it is served.
  void missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) override;

private:
  static constexpr unsigned streams = 32;
  static constexpr unsigned page_bytes = 4096;

  struct Stream {
    std::uint64_t page = ~std::uint64_t{0};
    std::uint64_t last = 0;  ///< line
    std::uint64_t ahead = 0; ///< line up to which was asked, in the direction
    std::int64_t direction = 0;
    std::uint64_t used = 0;
  };

  Stream& stream_of(std::uint64_t page);

  std::array<Stream, streams> table_;
  std::uint64_t now_ = 0;
  std::uint64_t lines_a_page_;
  std::int64_t depth_;
};

} // namespace nearfar::cache
