// Memory for metadata: near, outside all tiers, shared by all allocators of the process. Small
// pieces are reused, and never returned to the system.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>

#include "os/lock.hpp"

namespace nearfar::alloc {

/// Small pieces for one owner, whose own lock guards them. For code that signal handlers may run: a
/// handler may have interrupted its thread while that held metadata_lock().
class MetadataPool {
public:
  constexpr MetadataPool() = default;
  MetadataPool(const MetadataPool&) = delete;
  MetadataPool& operator=(const MetadataPool&) = delete;

  /// As allocate_metadata() and free_metadata().
  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes);

private:
  static constexpr std::size_t unit = 64;
  static constexpr std::size_t largest = 16384; ///< larger pieces are mappings of their own
  struct Piece {
    Piece* next;
  };

  Piece* free_[largest / unit + 1] = {};
  std::byte* chunk_ = nullptr;
  std::size_t chunk_left_ = 0;
};

/// `bytes` aligned to 64, contents undefined; nullptr if the system has no memory.
void* allocate_metadata(std::size_t bytes);
/// `bytes` as allocated.
void free_metadata(void* memory, std::size_t bytes);
std::size_t metadata_bytes();

os::Lock& metadata_lock();

} // namespace nearfar::alloc
