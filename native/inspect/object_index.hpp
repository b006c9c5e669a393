// All objects of a heap, found by any offset within them.
#pragma once

#include <vector>

#include "inspect/objects.hpp"

namespace nearfar::inspect {

class ObjectIndex final : public ObjectSink {
public:
  static constexpr std::size_t none = ~std::size_t{0};

  struct Item {
    Offset offset;
    Offset bytes;
    Offset block_bytes;
    std::uint64_t type;
  };

  void object(const Object& object) override;
  /// Call it once, when all objects are added.
  void index();

  /// The object that contains `offset`, or none.
  std::size_t holding(Offset offset) const {
    if (offset - first_ >= end_ - first_) return none;
    return search(offset);
  }

  std::size_t size() const { return items_.size(); }
  const Item& operator[](std::size_t i) const { return items_[i]; }
  bool internal(std::size_t i) const { return internal_[i]; }

private:
  static constexpr Offset step = 4096; ///< one entry of the index stands for so many bytes

  std::size_t search(Offset offset) const;

  std::vector<Item> items_; ///< upward by offset
  std::vector<bool> internal_;
  std::vector<std::size_t> starts_; ///< the first item at or behind each step
  Offset first_ = 0;
  Offset end_ = 0;
};

} // namespace nearfar::inspect
