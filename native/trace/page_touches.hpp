// Pages of one size that accesses touched, and the number of first touches of each site.
//
// First touch    the access that faults a page in. A page that was unmapped is faulted in again.
// Owner          the site of the access that touched the page first; a site of the heap takes the
//                page over from one of another kind, because an allocator writes its own
//                administration on a page before the block on it is used.
// Thread safety  none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nearfar::trace {

/// The site of an object.
struct PageOwner {
  std::uint32_t site = 0;
  bool heap = false;
};

inline constexpr unsigned small_page_shift = 12;
inline constexpr unsigned large_page_shift = 21;

class PageTouches {
public:
  explicit PageTouches(unsigned page_shift = small_page_shift)
      : page_of_line_(page_shift - line_shift) {}

  /// False if an access to the line changes nothing: its page belongs to the heap.
  bool may_change(std::uint64_t line) const {
    return recent_heap_[place(line)] != line >> page_of_line_;
  }

  void add(std::uint64_t line, PageOwner owner) {
    if (!may_change(line)) return;
    const std::uint64_t page = line >> page_of_line_;
    if (owner.heap) recent_heap_[place(line)] = page;
    const auto [known, is_new] = owners_.try_emplace(page, owner);
    if (!is_new) {
      if (known->second.heap || !owner.heap) return;
      --faults_[known->second.site];
      --non_heap_;
      known->second = owner;
    }
    if (owner.site >= faults_.size()) faults_.resize(std::size_t{owner.site} + 1);
    ++faults_[owner.site];
    non_heap_ += !owner.heap;
    peak_non_heap_ = std::max(peak_non_heap_, non_heap_);
    count_ += is_new;
  }

  /// The bytes [begin, end) were unmapped. A page counts if all of it was.
  void unmapped(std::uint64_t begin, std::uint64_t end) {
    const unsigned shift = page_of_line_ + line_shift;
    const std::uint64_t first = (begin + (std::uint64_t{1} << shift) - 1) >> shift;
    const std::uint64_t last = end >> shift;
    if (first >= last) return;
    if (last - first < owners_.size()) {
      for (std::uint64_t page = first; page < last; ++page)
        if (const auto known = owners_.find(page); known != owners_.end()) forget(known);
      return;
    }
    for (auto known = owners_.begin(); known != owners_.end();)
      known = known->first >= first && known->first < last ? forget(known) : std::next(known);
  }

  /// The memory at [before, before + bytes) was moved to `after`.
  void moved(std::uint64_t before, std::uint64_t after, std::uint64_t bytes) {
    const unsigned shift = page_of_line_ + line_shift;
    std::vector<std::pair<std::uint64_t, PageOwner>> carried;
    for (std::uint64_t page = before >> shift; page << shift < before + bytes; ++page)
      if (const auto known = owners_.find(page); known != owners_.end()) {
        carried.emplace_back(page - (before >> shift) + (after >> shift), known->second);
        forget(known);
      }
    for (const auto& [page, owner] : carried)
      if (owners_.try_emplace(page, owner).second) non_heap_ += !owner.heap;
  }

  /// First touches, those of pages that were mapped anew included.
  std::uint64_t count() const { return count_; }
  /// Most pages that belonged to no allocation at once.
  std::uint64_t peak_non_heap_pages() const { return peak_non_heap_; }
  /// First touches by site.
  const std::vector<std::uint64_t>& faults() const { return faults_; }

private:
  static constexpr unsigned line_shift = 6;
  static constexpr std::size_t recent = 1u << 16;
  using Owners = std::unordered_map<std::uint64_t, PageOwner>;

  std::size_t place(std::uint64_t line) const { return (line >> page_of_line_) % recent; }

  Owners::iterator forget(Owners::iterator known) {
    std::uint64_t& cached = recent_heap_[known->first % recent];
    if (cached == known->first) cached = ~std::uint64_t{0};
    non_heap_ -= !known->second.heap;
    return owners_.erase(known);
  }

  unsigned page_of_line_;
  std::vector<std::uint64_t> recent_heap_ = std::vector<std::uint64_t>(recent, ~std::uint64_t{0});
  Owners owners_;
  std::vector<std::uint64_t> faults_;
  std::uint64_t count_ = 0;
  std::uint64_t non_heap_ = 0, peak_non_heap_ = 0;
};

/// The same touches, by small and by large pages.
struct FirstTouches {
  PageTouches small{small_page_shift};
  PageTouches large{large_page_shift};

  bool may_change(std::uint64_t line) const {
    return small.may_change(line) || large.may_change(line);
  }
  void add(std::uint64_t line, PageOwner owner) {
    small.add(line, owner);
    large.add(line, owner);
  }
  void moved(std::uint64_t before, std::uint64_t after, std::uint64_t bytes) {
    small.moved(before, after, bytes);
    large.moved(before, after, bytes);
  }
  void unmapped(std::uint64_t begin, std::uint64_t end) {
    small.unmapped(begin, end);
    large.unmapped(begin, end);
  }
};

} // namespace nearfar::trace
