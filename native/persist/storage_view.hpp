// Storage of the typed layer: a pool, or memory that emulates one (tests, crash images).
#pragma once

#include <cstddef>
#include <cstdint>

#include "persist/pool.hpp"

namespace nearfar::persist {

/// Allocates memory. allocate() and release() behave as those of Pool.
class StorageAllocator {
public:
  virtual ~StorageAllocator() = default;
  virtual Status allocate(std::uint64_t* link, std::size_t bytes, std::uint64_t type,
                          bool zeroed) = 0;
  virtual Status release(std::uint64_t* link) = 0;
};

struct StorageView {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::byte* root = nullptr; ///< room for a StoreHead and the program's root
  std::size_t root_bytes = 0;
  Durability durability = Durability::flush;
  bool zero_on_free = false;
  StorageAllocator* allocator = nullptr;
  pmemobjpool* pool = nullptr; ///< for the undo path
  const char* name = "";       ///< for errors
};

/// Storage in a pool.
class PoolStorage final : public StorageAllocator {
public:
  explicit PoolStorage(Pool& pool) : pool_(&pool) {}
  Status allocate(std::uint64_t* link, std::size_t bytes, std::uint64_t type,
                  bool zeroed) override {
    return pool_->allocate(link, bytes, type, zeroed);
  }
  Status release(std::uint64_t* link) override { return pool_->release(link); }

  StorageView storage() {
    return {pool_->base(),        pool_->bytes(),        pool_->root(), pool_->root_bytes(),
            pool_->durability(),  pool_->zero_on_free(), this,          pool_->handle(),
            pool_->path().c_str()};
  }

private:
  Pool* pool_;
};

} // namespace nearfar::persist
