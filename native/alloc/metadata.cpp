#include "alloc/metadata.hpp"

#include <atomic>
#include <cstdint>

#include "alloc/lock_order.hpp"
#include "os/address_space.hpp"

namespace nearfar::alloc {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

constinit std::atomic<std::size_t> allocated{0};
constinit os::Lock lock NEARFAR_LOCK_LEVEL(metadata);
constinit MetadataPool pool NEARFAR_GUARDED_BY(lock);

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

} // namespace

void* MetadataPool::allocate(std::size_t bytes) {
  bytes = rounded(bytes, unit);
  allocated.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes > largest) return os::map_anonymous(bytes);
  Piece*& list = free_[bytes / unit];
  if (list != nullptr) {
    Piece* piece = list;
    list = piece->next;
    return piece;
  }
  if (chunk_left_ < bytes) {
    std::byte* fresh = os::map_anonymous(chunk_bytes);
    if (fresh == nullptr) return nullptr;
    chunk_ = fresh;
    chunk_left_ = chunk_bytes;
  }
  std::byte* piece = chunk_;
  chunk_ += bytes;
  chunk_left_ -= bytes;
  return piece;
}

void MetadataPool::release(void* memory, std::size_t bytes) {
  bytes = rounded(bytes, unit);
  allocated.fetch_sub(bytes, std::memory_order_relaxed);
  if (bytes > largest) {
    os::unmap(static_cast<std::byte*>(memory), bytes);
    return;
  }
  auto* piece = static_cast<Piece*>(memory);
  piece->next = free_[bytes / unit];
  free_[bytes / unit] = piece;
}

void* allocate_metadata(std::size_t bytes) {
  const os::LockGuard guard(lock);
  return pool.allocate(bytes);
}

void free_metadata(void* memory, std::size_t bytes) {
  const os::LockGuard guard(lock);
  pool.release(memory, bytes);
}

std::size_t metadata_bytes() { return allocated.load(std::memory_order_relaxed); }

os::Lock& metadata_lock() { return lock; }

} // namespace nearfar::alloc
