// Arrays one after another in one mapping, each at the beginning of a page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "os/address_space.hpp"

namespace nearfar::crash {

class Sections {
public:
  explicit Sections(void* memory) : at_(static_cast<std::byte*>(memory)) {}

  /// What next<Item>(count) takes.
  template <class Item>
  static constexpr std::size_t bytes(std::uint64_t count) {
    return (count * sizeof(Item) + os::page_bytes - 1) / os::page_bytes * os::page_bytes;
  }
  template <class Item>
  Item* next(std::uint64_t count) {
    return reinterpret_cast<Item*>(std::exchange(at_, at_ + bytes<Item>(count)));
  }

private:
  std::byte* at_;
};

} // namespace nearfar::crash
