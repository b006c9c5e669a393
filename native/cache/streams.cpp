#include "cache/streams.hpp"

#include <algorithm>

namespace nearfar::cache {

StreamPrefetcher::Stream& StreamPrefetcher::stream_of(std::uint64_t page) {
  const auto found = std::ranges::find(known_, page, &Stream::page);
  if (found != known_.end()) return *found;
  Stream& oldest = *std::ranges::min_element(known_, {}, &Stream::used);
  oldest = {page, ~std::uint64_t{0}, 0};
  return oldest;
}

void StreamPrefetcher::missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) {
  Stream& stream = stream_of(line / page_lines);
  stream.used = ++now_;
  const std::uint64_t first = line / page_lines * page_lines;
  if (line == stream.last + 1) {
    const std::uint64_t end = std::min(line + 1 + depth, first + page_lines);
    for (std::uint64_t next = line + 1; next < end; ++next)
      wanted.push_back(next);
    stream.last = end - 1;
  } else if (line + 1 == stream.last) {
    const std::uint64_t end = line - std::min<std::uint64_t>(line - first, depth);
    for (std::uint64_t next = line; next-- > end;)
      wanted.push_back(next);
    stream.last = end;
  } else {
    stream.last = line;
  }
}

} // namespace nearfar::cache
