#include "cache/run_ahead.hpp"

#include <algorithm>

namespace nearfar::cache {

void RunAhead::missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) {
  const std::uint64_t page = line / page_lines;
  Stream& stream = of_page(page);
  if (stream.page != page) stream = {page, ~std::uint64_t{0} - 1, fewest, false};
  const bool up = line == stream.last + 1;
  if (!up && line + 1 != stream.last) {
    stream = {page, line, fewest, false};
    return;
  }
  const unsigned ahead = stream.ahead;
  const std::uint64_t count = up ? ahead : std::min<std::uint64_t>(line, ahead);
  for (std::uint64_t i = 1; i <= count; ++i)
    wanted.push_back(up ? line + i : line - i);
  const std::uint64_t last = up ? line + count : line - count;
  const std::uint64_t next = up ? last + 1 : last - 1; // where it misses next, perhaps pages on
  of_page(next / page_lines) = {next / page_lines, last, std::min(2 * ahead, most_), true};
}

bool RunAhead::expects(std::uint64_t line) const {
  const Stream& stream = known_[line / page_lines % streams];
  return stream.runs && stream.page == line / page_lines &&
         (line == stream.last + 1 || line + 1 == stream.last);
}

} // namespace nearfar::cache
