#include "alloc/metadata.hpp"

#include <atomic>
#include <cstdint>

#include "alloc/lock_order.hpp"
#include "os/address_space.hpp"

namespace nearfar::alloc {

namespace {

constexpr std::size_t unit = 64;
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
constexpr std::size_t listed_bytes = 16384; ///< larger pieces are mappings of their own

struct Piece {
  Piece* next;
};

constinit os::Lock lock NEARFAR_LOCK_LEVEL(metadata);
constinit Piece* free_pieces[listed_bytes / unit + 1] NEARFAR_GUARDED_BY(lock) = {};
constinit std::byte* chunk NEARFAR_GUARDED_BY(lock) = nullptr;
constinit std::size_t chunk_left NEARFAR_GUARDED_BY(lock) = 0;
constinit std::atomic<std::size_t> allocated{0};

std::size_t rounded(std::size_t bytes) { return (bytes + unit - 1) / unit * unit; }

} // namespace

void* allocate_metadata(std::size_t bytes) {
  bytes = rounded(bytes);
  allocated.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes > listed_bytes) return os::map_anonymous(bytes);
  const os::LockGuard guard(lock);
  Piece*& list = free_pieces[bytes / unit];
  if (list != nullptr) {
    Piece* piece = list;
    list = piece->next;
    return piece;
  }
  if (chunk_left < bytes) {
    std::byte* fresh = os::map_anonymous(chunk_bytes);
    if (fresh == nullptr) return nullptr;
    chunk = fresh;
    chunk_left = chunk_bytes;
  }
  std::byte* piece = chunk;
  chunk += bytes;
  chunk_left -= bytes;
  return piece;
}

void free_metadata(void* memory, std::size_t bytes) {
  bytes = rounded(bytes);
  allocated.fetch_sub(bytes, std::memory_order_relaxed);
  if (bytes > listed_bytes) {
    os::unmap(static_cast<std::byte*>(memory), bytes);
    return;
  }
  const os::LockGuard guard(lock);
  auto* piece = static_cast<Piece*>(memory);
  piece->next = free_pieces[bytes / unit];
  free_pieces[bytes / unit] = piece;
}

std::size_t metadata_bytes() { return allocated.load(std::memory_order_relaxed); }

os::Lock& metadata_lock() { return lock; }

} // namespace nearfar::alloc
