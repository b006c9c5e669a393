#include "inspect/object_index.hpp"

#include <algorithm>

namespace nearfar::inspect {

void ObjectIndex::object(const Object& object) {
  items_.push_back({object.offset, object.bytes, object.block_bytes, object.type});
  internal_.push_back(object.internal);
}

void ObjectIndex::index() {
  if (items_.empty()) return;
  first_ = items_.front().offset;
  end_ = items_.back().offset + items_.back().bytes;
  starts_.reserve((end_ - first_) / step + 1);
  for (std::size_t i = 0; i < items_.size(); ++i)
    while (starts_.size() <= (items_[i].offset - first_) / step)
      starts_.push_back(i);
}

/// Most neighbors have the same size, so that a guess by this size is mostly right.
std::size_t ObjectIndex::search(Offset offset) const {
  const std::size_t slot = std::min<std::size_t>((offset - first_) / step, starts_.size() - 1);
  const std::size_t start = starts_[slot];
  const Item& nearest = items_[start];
  if (offset >= nearest.offset) {
    const std::size_t guess = start + (offset - nearest.offset) / nearest.block_bytes;
    if (guess < items_.size() && offset - items_[guess].offset < items_[guess].bytes) return guess;
  }
  const std::size_t last =
      slot + 1 < starts_.size() ? std::min(starts_[slot + 1] + 1, items_.size()) : items_.size();
  const auto after =
      std::upper_bound(items_.begin() + static_cast<std::ptrdiff_t>(start),
                       items_.begin() + static_cast<std::ptrdiff_t>(last), offset,
                       [](Offset wanted, const Item& item) { return wanted < item.offset; });
  auto found = static_cast<std::size_t>(after - items_.begin());
  if (found == 0) return none;
  const Item& item = items_[--found];
  return offset - item.offset < item.bytes ? found : none;
}

} // namespace nearfar::inspect
