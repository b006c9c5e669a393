// A list that allocates nothing while it is short.
//
// For values without destructors; references end when it grows.
// Thread safety  none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace nearfar::persist {

template <class T, std::size_t inline_count>
class Few {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  Few() : data_(inline_) {}
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;

  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  bool empty() const { return size_ == 0; }
  T& back() { return data_[size_ - 1]; }
  void push_back(const T& value) {
    const T copy = value; // which may lie here
    if (size_ == room_) grow();
    data_[size_++] = copy;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }

private:
  [[gnu::noinline]] void grow() {
    auto more = std::make_unique_for_overwrite<T[]>(2 * room_);
    std::copy(begin(), end(), more.get());
    more_ = std::move(more);
    data_ = more_.get();
    room_ *= 2;
  }

  T* data_;
  std::size_t size_ = 0;
  std::size_t room_ = inline_count;
  std::unique_ptr<T[]> more_;
  T inline_[inline_count];
};

} // namespace nearfar::persist
