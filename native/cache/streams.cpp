#include "cache/streams.hpp"

#include <algorithm>

namespace nearfar::cache {

void StreamPrefetcher::missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) {
  const std::uint64_t page = line / page_lines;
  const std::uint64_t first = page * page_lines;
  Stream& stream = known_[page % streams];
  if (stream.page != page) stream = {page, ~std::uint64_t{0} - 1};
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
