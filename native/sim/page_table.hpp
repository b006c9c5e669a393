// Maps page numbers to values (frame numbers): an open-addressing hash table that grows.
//
// Thread safety  none.
#pragma once

#include <cstdint>
#include <vector>

namespace nearfar::sim {

class PageTable {
public:
  static constexpr std::uint64_t absent = ~std::uint64_t{0};

  PageTable() : slots_(1024) {}

  /// Prefetches the slot of `page` for a later lookup.
  void prefetch(std::uint64_t page) const { __builtin_prefetch(&slots_[start(page)]); }

  /// Returns the value of a page; inserts `absent` for a new page. Valid until the next call.
  std::uint64_t& operator[](std::uint64_t page) {
    for (std::uint64_t at = start(page);; at = (at + 1) & (slots_.size() - 1)) {
      PageSlot& slot = slots_[at];
      if (slot.page == page) return slot.value;
      if (slot.page == absent) return insert(page, slot);
    }
  }

  std::uint64_t size() const { return used_; }

private:
  struct PageSlot {
    std::uint64_t page = absent;
    std::uint64_t value = absent;
  };

  std::uint64_t start(std::uint64_t page) const {
    return ((page * 0x9e3779b97f4a7c15u) >> 20) & (slots_.size() - 1);
  }

  std::uint64_t& insert(std::uint64_t page, PageSlot& slot) {
    if (++used_ * 2 <= slots_.size()) {
      slot.page = page;
      return slot.value;
    }
    std::vector<PageSlot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const PageSlot& kept : old)
      if (kept.page != absent) free_slot(kept.page) = kept;
    PageSlot& fresh = free_slot(page);
    fresh.page = page;
    return fresh.value;
  }

  PageSlot& free_slot(std::uint64_t page) {
    std::uint64_t at = start(page);
    while (slots_[at].page != absent)
      at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }

  std::vector<PageSlot> slots_;
  std::uint64_t used_ = 0;
};

} // namespace nearfar::sim
