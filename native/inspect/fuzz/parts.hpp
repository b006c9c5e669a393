// A view that is the input of a fuzz target, continued by zeroes to a fixed size.
#pragma once

#include <algorithm>

#include "fuzz_target.hpp"
#include "inspect/pool_view.hpp"

namespace nearfar::inspect::fuzz {

using nearfar::fuzz::Choices;

class Padded final : public PoolView {
public:
  Padded(const Choices& input, Offset begin, Offset size)
      : data_(input.rest()), count_(input.rest_bytes()), begin_(begin), size_(size) {}

  Offset size() const override { return size_; }
  bool read(Offset offset, void* to, std::size_t bytes) const override {
    if (offset > size_ || bytes > size_ - offset) return false;
    std::memset(to, 0, bytes);
    const Offset from = std::max(offset, begin_);
    const Offset end = std::min(offset + bytes, begin_ + count_);
    if (from < end)
      std::memcpy(static_cast<std::byte*>(to) + (from - offset), data_ + (from - begin_),
                  end - from);
    return true;
  }

private:
  const std::uint8_t* data_;
  std::size_t count_;
  Offset begin_; ///< where the input lies within the view
  Offset size_;
};

} // namespace nearfar::inspect::fuzz
