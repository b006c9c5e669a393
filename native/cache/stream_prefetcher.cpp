#include "cache/stream_prefetcher.hpp"

#include <algorithm>
#include <bit>

#include "cache/match.hpp"

namespace nearfar::cache {

StreamPrefetcher::StreamPrefetcher(unsigned line_bytes, unsigned depth)
    : lines_shift_(static_cast<unsigned>(std::countr_zero(page_bytes / line_bytes))),
      depth_(depth) {
  pages_.fill(~std::uint64_t{0});
  for (unsigned i = 0; i < streams; ++i) {
    table_[i].newer = static_cast<unsigned char>(i - 1);
    table_[i].older = static_cast<unsigned char>(i + 1);
  }
}

/// The stream of a page, or `streams`.
unsigned StreamPrefetcher::find(std::uint64_t page) const {
  for (unsigned first = 0; first < streams; first += 8)
    if (const unsigned found = match_eight(pages_.data() + first, page))
      return first + static_cast<unsigned>(std::countr_zero(found));
  return streams;
}

void StreamPrefetcher::make_newest(unsigned number) {
  if (number == newest_) return;
  Stream& stream = table_[number];
  table_[stream.newer].older = stream.older;
  if (number == oldest_)
    oldest_ = stream.newer;
  else
    table_[stream.older].newer = stream.newer;
  table_[newest_].newer = static_cast<unsigned char>(number);
  stream.older = static_cast<unsigned char>(newest_);
  newest_ = number;
}

/// The stream of a page, made the newest; `streams` if it replaced the oldest one.
unsigned StreamPrefetcher::stream_of(std::uint64_t page) {
  unsigned number = pages_[newest_] == page ? newest_ : find(page);
  const bool fresh = number == streams;
  if (fresh) number = oldest_;
  make_newest(number);
  pages_[number] = page;
  return fresh ? streams : number;
}

void StreamPrefetcher::missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) {
  const std::uint64_t page = line >> lines_shift_;
  const bool fresh = stream_of(page) == streams;
  Stream& stream = table_[newest_];
  if (fresh) {
    stream.last = line;
    stream.direction = 0;
    return;
  }
  const auto step = static_cast<std::int64_t>(line - stream.last);
  stream.last = line;
  if (step == 0) return;
  if (step != 1 && step != -1) {
    stream.direction = 0;
    return;
  }
  if (step != stream.direction) { // the first step of a stream, or it turned
    stream.direction = step;
    stream.ahead = line;
    return;
  }
  const std::int64_t asked =
      std::max<std::int64_t>(static_cast<std::int64_t>(stream.ahead - line) * step, 0);
  for (std::int64_t distance = asked + 1; distance <= depth_; ++distance) {
    const std::uint64_t next = line + static_cast<std::uint64_t>(distance * step);
    if (next >> lines_shift_ != page) break;
    wanted.push_back(next);
    stream.ahead = next;
  }
}

} // namespace nearfar::cache
