// Ranges of addresses that do not overlap, each with its object.
//
// Thread safety  none. Pointers are valid until the next add().
#pragma once

#include <cstdint>
#include <vector>

#include "trace/address_index.hpp"

namespace nearfar::trace {

struct ObjectRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;    ///< after the last byte
  std::uint32_t site = 0;   ///< index in LiveObjects' sites
  std::uint32_t number = 0; ///< of the object in the file; 0: not yet
  std::uint64_t born_record = 0;
  std::uint64_t born_instruction = 0;
};

class Ranges {
public:
  /// The first range that ends after an address, nullptr if there is none.
  ObjectRange* first_ending_after(std::uint64_t address) {
    ObjectRange* before = get(index_.at_or_before(address));
    return before != nullptr && before->end > address ? before : get(index_.after(address));
  }
  /// The last range that begins at or before an address, which is in no range.
  ObjectRange* last_before(std::uint64_t address) { return get(index_.at_or_before(address)); }
  ObjectRange* after(std::uint64_t begin) { return get(index_.after(begin)); }
  /// The range that begins at an address.
  ObjectRange* at(std::uint64_t begin) {
    ObjectRange* found = get(index_.at(begin));
    return found != nullptr && found->begin == begin ? found : nullptr;
  }

  /// Adds a range that overlaps no other. One that begins in the same 8 bytes is replaced.
  void add(const ObjectRange& range) {
    if (const std::uint32_t other = index_.at(range.begin)) free_.push_back(other);
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(pool_.size()));
      pool_.emplace_back();
    }
    pool_[free_.back()] = range;
    index_.set(range.begin, free_.back());
    free_.pop_back();
  }
  void remove(const ObjectRange& range) {
    const std::uint64_t begin = range.begin;
    free_.push_back(index_.at(begin));
    index_.erase(begin);
  }

  /// Calls `function` for each range, by address.
  template <class Function>
  void each(Function function) {
    for (ObjectRange* range = first_ending_after(0); range != nullptr; range = after(range->begin))
      function(*range);
  }

private:
  ObjectRange* get(std::uint32_t number) {
    return number == AddressIndex::none ? nullptr : &pool_[number];
  }

  AddressIndex index_;
  std::vector<ObjectRange> pool_ = std::vector<ObjectRange>(1);
  std::vector<std::uint32_t> free_;
};

} // namespace nearfar::trace
