// Pages of 4 KiB that lines lie in, each counted once, and those of them that no allocation made.
//
// Thread safety  none.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace nearfar::trace {

class Pages {
public:
  /// False where the page of a line is known; true may be said of a known one too.
  bool is_new(std::uint64_t line) const { return recent_[place(line)] != line >> page_of_line; }

  void add(std::uint64_t line, bool allocated) {
    const std::uint64_t page = line >> page_of_line;
    recent_[place(line)] = page;
    if (seen_.insert(page).second) fixed_ += !allocated;
  }

  std::size_t count() const { return seen_.size(); }
  std::size_t fixed() const { return fixed_; }

private:
  static constexpr unsigned page_of_line = 12 - 6;
  static constexpr std::size_t recent = 1u << 16;

  static std::size_t place(std::uint64_t line) { return (line >> page_of_line) % recent; }

  std::vector<std::uint64_t> recent_ = std::vector<std::uint64_t>(recent, ~std::uint64_t{0});
  std::unordered_set<std::uint64_t> seen_;
  std::size_t fixed_ = 0;
};

} // namespace nearfar::trace
