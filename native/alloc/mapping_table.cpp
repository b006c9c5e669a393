#include "alloc/mapping_table.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "alloc/metadata.hpp"

namespace nearfar::alloc {

SharedOrigin* MappingTable::share(const MappingOrigin& origin) {
  void* memory = allocate_metadata(sizeof(SharedOrigin));
  return memory == nullptr ? nullptr : new (memory) SharedOrigin{origin, 0};
}

void MappingTable::discard(SharedOrigin* shared) {
  if (shared != nullptr && shared->intervals == 0) free_metadata(shared, sizeof(SharedOrigin));
}

/// The index of the first interval that ends behind an address.
std::size_t MappingTable::lower_bound(std::uintptr_t address) const {
  const MappedInterval* found =
      std::upper_bound(begin(), end(), address,
                       [](std::uintptr_t at, const MappedInterval& each) { return at < each.end; });
  return static_cast<std::size_t>(found - begin());
}

bool MappingTable::reserve_one() {
  if (count_ < capacity_) return true;
  constexpr std::size_t least = 64;
  const std::size_t more = capacity_ == 0 ? least : 2 * capacity_;
  void* memory = allocate_metadata(more * sizeof(MappedInterval));
  if (memory == nullptr) return false;
  if (count_ > 0) std::memcpy(memory, intervals_, count_ * sizeof(MappedInterval));
  if (capacity_ > 0) free_metadata(intervals_, capacity_ * sizeof(MappedInterval));
  intervals_ = static_cast<MappedInterval*>(memory);
  capacity_ = more;
  return true;
}

bool MappingTable::insert_at(std::size_t index, const MappedInterval& interval) {
  if (!reserve_one()) return false;
  std::memmove(intervals_ + index + 1, intervals_ + index,
               (count_ - index) * sizeof(MappedInterval));
  intervals_[index] = interval;
  ++interval.shared->intervals;
  ++count_;
  return true;
}

void MappingTable::remove_at(std::size_t index) {
  --intervals_[index].shared->intervals;
  --count_;
  std::memmove(intervals_ + index, intervals_ + index + 1,
               (count_ - index) * sizeof(MappedInterval));
}

bool MappingTable::insert(const MappedInterval& interval) {
  return insert_at(lower_bound(interval.begin), interval);
}

const MappedInterval* MappingTable::first_in(std::uintptr_t begin, std::uintptr_t end) const {
  const std::size_t index = lower_bound(begin);
  return index < count_ && intervals_[index].begin < end ? intervals_ + index : nullptr;
}

bool MappingTable::take_first(std::uintptr_t begin, std::uintptr_t end, MappedInterval& removed) {
  const std::size_t index = lower_bound(begin);
  if (index == count_ || intervals_[index].begin >= end) return false;
  MappedInterval& found = intervals_[index];
  removed = found;
  removed.begin = std::max(found.begin, begin);
  removed.end = std::min(found.end, end);
  const MappedInterval behind = {removed.end, found.end, found.rule, found.shared};
  if (found.begin < removed.begin)
    found.end = removed.begin;
  else
    remove_at(index);
  // Without memory the rest is forgotten.
  if (behind.begin < behind.end) insert(behind);
  return true;
}

} // namespace nearfar::alloc
