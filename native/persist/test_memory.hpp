// For tests: memory that emulates a pool, so that any image of it can be made.
#pragma once

#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "persist/object_store.hpp"

namespace nearfar::persist::test {

/// Zeroed memory on a page, with a root and a bump allocator behind it. release() forgets.
class Memory final : public StorageAllocator {
public:
  Memory(std::size_t bytes, std::size_t root_bytes)
      : bytes_(bytes), root_bytes_(root_bytes), used_((root_bytes + 4095) / 4096 * 4096),
        data_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{4096}))) {
    std::memset(data_.get(), 0, bytes);
  }

  Status allocate(std::uint64_t* link, std::size_t bytes, std::uint64_t, bool) override {
    const std::size_t size = (bytes + 63) / 64 * 64;
    if (used_ + size > bytes_) return Error::make(Errc::no_space, "no %zu bytes left", bytes);
    *link = used_;
    used_ += size;
    record(link);
    return Done{};
  }
  Status release(std::uint64_t* link) override {
    *link = 0;
    record(link);
    return Done{};
  }

  StorageView storage() {
    return {data_.get(), bytes_, data_.get(), root_bytes_, Durability::flush,
            false,       this,   nullptr,     "memory"};
  }
  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  std::size_t used() const { return used_; }
  void use_up_to(std::size_t used) { used_ = used; }

private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, std::align_val_t{4096}); }
  };
  /// libpmemobj changes a link atomically and durably.
  static void record(std::uint64_t* link) {
    storelog::store(link, sizeof *link);
    storelog::flush(link, sizeof *link);
    storelog::fence();
  }

  std::size_t bytes_;
  std::size_t root_bytes_;
  std::size_t used_;
  std::unique_ptr<std::byte, Free> data_;
};

} // namespace nearfar::persist::test
