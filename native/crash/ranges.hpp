// Ranges of bytes in a pool.
//
// Thread safety  none: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace nearfar::crash {

/// Bytes of the pool: sorted ranges that do not touch.
class Ranges {
public:
  void add(std::uint64_t begin, std::uint64_t end) {
    auto at = ranges_.upper_bound(begin);
    if (at != ranges_.begin() && std::prev(at)->second >= begin) --at;
    while (at != ranges_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace(begin, end);
  }
  bool has_all(std::uint64_t begin, std::uint64_t end) const {
    const auto after = ranges_.upper_bound(begin);
    return after != ranges_.begin() && std::prev(after)->second >= end;
  }
  bool has_some(std::uint64_t begin, std::uint64_t end) const {
    const auto after = ranges_.lower_bound(end);
    return after != ranges_.begin() && std::prev(after)->second > begin;
  }

private:
  std::map<std::uint64_t, std::uint64_t> ranges_; ///< end by begin
};

} // namespace nearfar::crash
