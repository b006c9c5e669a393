// For tests of structures: a pool in a buffer.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "structures/persistence_policy.hpp"

namespace nearfar::structures::test {

/// A bump allocator in a buffer, whose first word is the number of bytes in use.
class Arena final : public persist::StorageAllocator {
public:
  Arena(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  Status allocate(std::uint64_t* link, std::size_t bytes, std::uint64_t, bool zeroed) override {
    auto* taken = reinterpret_cast<std::uint64_t*>(base_);
    const std::uint64_t from = (std::max<std::uint64_t>(*taken, first) + 63) / 64 * 64;
    if (from + bytes > bytes_) return Error::make(Errc::no_space, "the buffer is full");
    std::memset(base_ + from, zeroed ? 0 : 0xA5, bytes); // a pool's memory is not fresh
    *taken = from + bytes;
    *link = from;
    return Done{};
  }
  Status release(std::uint64_t* link) override {
    *link = 0;
    return Done{};
  }

  static constexpr std::uint64_t first = 8192; ///< the root of a structure lies before it

private:
  std::byte* base_;
  std::size_t bytes_;
};

/// A buffer with a root, on which any number of media can be opened.
class Buffer {
public:
  explicit Buffer(std::size_t bytes) : lines_(bytes / 64) {}
  std::byte* base() { return lines_.front().bytes; }
  std::size_t bytes() const { return lines_.size() * 64; }
  template <class Root>
  Root& root() {
    static_assert(sizeof(Root) <= Arena::first - 64);
    return *reinterpret_cast<Root*>(base() + 64);
  }
  template <class PersistencePolicy = Pmem>
  std::unique_ptr<PersistencePolicy> medium() {
    return std::make_unique<PersistencePolicy>(base(), persist::Durability::flush,
                                               std::make_unique<Arena>(base(), bytes()));
  }

private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::vector<Line> lines_;
};

} // namespace nearfar::structures::test
