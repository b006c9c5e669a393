#include "cache/stream_prefetcher.hpp"

#include <algorithm>

namespace nearfar::cache {

StreamPrefetcher::StreamPrefetcher(unsigned line_bytes, unsigned depth)
    : lines_a_page_(page_bytes / line_bytes), depth_(depth) {}

StreamPrefetcher::Stream& StreamPrefetcher::stream_of(std::uint64_t page) {
  Stream* oldest = &table_[0];
  for (Stream& stream : table_) {
    if (stream.page == page) return stream;
    if (stream.used < oldest->used) oldest = &stream;
  }
  *oldest = {};
  oldest->page = page;
  return *oldest;
}

void StreamPrefetcher::missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) {
  const std::uint64_t page = line / lines_a_page_;
  Stream& stream = stream_of(page);
  const bool fresh = stream.used == 0;
  stream.used = ++now_;
  const auto step = static_cast<std::int64_t>(line - stream.last);
  stream.last = line;
  if (fresh || (step != 1 && step != -1)) {
    if (step == 0) return;
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
    if (next / lines_a_page_ != page) break;
    wanted.push_back(next);
    stream.ahead = next;
  }
}

} // namespace nearfar::cache
