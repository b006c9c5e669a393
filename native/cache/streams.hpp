// A prefetcher of ascending and descending streams, as the second caches of x86 processors have
// one.
//
// Rule           two misses of neighbouring lines in a page, one after the other, are a stream: the
//                next `depth` lines of that page in its direction are brought in. A table of
//                `streams` pages is remembered; a page has one place in it.
// Source         Intel 64 and IA-32 Architectures Optimization Reference Manual, "streamer": up to
//                20 lines ahead within a page, 32 streams. How far it really runs is not published.
// Thread safety  none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cache/hierarchy.hpp"

namespace nearfar::cache {

class StreamPrefetcher final : public Prefetcher {
public:
  void missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) override;

  static constexpr unsigned depth = 16;
  static constexpr unsigned streams = 32;
  static constexpr unsigned page_lines = 64;

private:
  struct Stream {
    std::uint64_t page = ~std::uint64_t{0};
    std::uint64_t last = 0; ///< line that missed, or the last one brought in
  };

  std::array<Stream, streams> known_;
};

} // namespace nearfar::cache
