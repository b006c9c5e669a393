// The policy on which every structure is built: its memory, and the operations that make stores
// durable.
//
// Pmem           a pool: links are offsets from its base; flushed and then fenced stores survive.
// Unflushed      the same code in the same pool without flushes and fences: a baseline for their
//                cost. A crash loses or tears stores.
// Dram           the volatile counterpart: links are addresses; nothing survives. The code is the
//                same; chunks come from the kernel in the same sizes, nodes from the same allocator
//                (node_heap.hpp), which packs them more densely than malloc: a fair comparison.
//
// A medium of another kind (an image of memory under the crash explorer) offers the same members.
//
// Durability     flush() begins the write-back of lines, fence() returns when all write-backs this
//                thread has begun are durable. On a medium that persists by msync, flush() itself
//                waits. Every store, flush and fence is reported to storelog with the line of the
//                structure that requested it.
// Thread safety  all members may be called by several threads; allocate() on different words.
// Errors         allocate(): no_space, without an effect. A failed msync is remembered: failed()
//                stays true, because data that was reported as durable may not be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "os/pages.hpp"
#include "persist/storage_view.hpp"
#include "persist/write_back.hpp"
#include "storelog/storelog.hpp"

namespace nearfar::structures {

using storelog::Site;

/// Loads a word that another thread may be storing.
inline std::uint64_t load(const std::uint64_t& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

/// Persistent memory; `enabled` is false for the baseline without flushes and fences.
template <bool enabled>
class Persistent {
public:
  static constexpr bool durable = enabled;

  explicit Persistent(persist::Pool& pool)
      : Persistent(pool.base(), pool.durability(), std::make_unique<persist::PoolStorage>(pool)) {}
  /// Memory outside of a pool: an image, or the buffer of a test. Links count from `base`.
  Persistent(std::byte* base, persist::Durability durability,
             std::unique_ptr<persist::StorageAllocator> allocator)
      : base_(base), write_back_(durability), allocator_(std::move(allocator)) {}

  template <class T>
  T* at(std::uint64_t link) const {
    return reinterpret_cast<T*>(base_ + link);
  }
  std::uint64_t link_of(const void* address) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
  }

  /// Stores a word atomically, after all earlier stores.
  void store(std::uint64_t& word, std::uint64_t value, Site site = Site::current()) {
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
    if constexpr (enabled) storelog::store(&word, sizeof word, site);
  }
  /// Reports stores that were made by other means.
  void stored(const void* at, std::size_t bytes, Site site = Site::current()) {
    if constexpr (enabled) storelog::store(at, bytes, site);
  }
  void flush(const void* at, std::size_t bytes, Site site = Site::current()) {
    if constexpr (enabled) write_back_.flush(at, bytes, site);
  }
  void fence(Site site = Site::current()) {
    if constexpr (enabled) write_back_.fence(site);
  }
  Status allocate(std::uint64_t* link, std::size_t bytes, bool zeroed) {
    return allocator_->allocate(link, bytes, chunk_type, zeroed);
  }
  bool failed() const { return write_back_.failed(); }

private:
  static constexpr std::uint64_t chunk_type = 0x6368756e6b; // "chunk", for pmempool info
  std::byte* base_;
  persist::WriteBack write_back_;
  std::unique_ptr<persist::StorageAllocator> allocator_;
};

using Pmem = Persistent<true>;
using Unflushed = Persistent<false>;

/// Ordinary memory, of one NUMA node if requested. The destructor frees all of it.
class Dram {
public:
  static constexpr bool durable = false;
  static constexpr int any_node = -1;

  explicit Dram(int node = any_node) : node_(node) {}

  template <class T>
  T* at(std::uint64_t link) const {
    return reinterpret_cast<T*>(link);
  }
  std::uint64_t link_of(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address);
  }
  void store(std::uint64_t& word, std::uint64_t value) {
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
  }
  void stored(const void*, std::size_t) {}
  void flush(const void*, std::size_t) {}
  void fence() {}
  Status allocate(std::uint64_t* link, std::size_t bytes, bool zeroed);
  bool failed() const { return false; }

private:
  /// Memory of small structures comes from the C library, which reuses it: a mapping of its own
  /// would cost ten microseconds to make, touch and unmap.
  static constexpr std::size_t largest_small = 64 << 10;
  struct Delete {
    void operator()(std::byte* block) const {
      ::operator delete(block, std::align_val_t{os::cache_line_bytes});
    }
  };
  using Small = std::unique_ptr<std::byte, Delete>;

  int node_;
  std::mutex mutex_;
  std::vector<os::MappedRange> ranges_;
  std::vector<Small> small_;
};

/// The error of a structure when an msync has failed.
Error sync_failed();

} // namespace nearfar::structures
