// The directory of extendible hashing, in DRAM: top bits of a hash -> segment.
//
// Growth         doubling makes a level of zeros in constant time; an entry is filled from the
//                level below when it is first read. Growth therefore does not pause, however large
//                the directory is. Old levels are kept: together they are at most as large as the
//                newest.
// Volatile       it is rebuilt from the segments (segments.hpp).
// Thread safety  find() by any thread at any time; reserve() and set() exclude each other.
// Source         extendible hashing: Fagin et al. 1979; segments below it: CCEH, Nam et al. 2019.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.hpp"

namespace nearfar::structures {

/// A segment's address with the number of hash bits that all its entries have in common. 0: none.
class DirectoryEntry {
public:
  static constexpr unsigned max_depth = 26;

  DirectoryEntry() = default;
  explicit DirectoryEntry(std::uint64_t word) : word_(word) {}
  /// `segment` is aligned to a cache line; its low bits hold the depth.
  DirectoryEntry(const void* segment, unsigned depth)
      : word_(reinterpret_cast<std::uintptr_t>(segment) | depth) {}

  explicit operator bool() const { return word_ != 0; }
  std::uint64_t word() const { return word_; }
  template <class T>
  T* segment() const {
    return reinterpret_cast<T*>(word_ & ~std::uint64_t{63});
  }
  unsigned depth() const { return static_cast<unsigned>(word_ & 63); }
  /// The hash bits that all entries have in common.
  std::uint64_t mask() const { return ~std::uint64_t{0} << (64 - depth()); }
  friend bool operator==(DirectoryEntry, DirectoryEntry) = default;

private:
  std::uint64_t word_ = 0;
};

class Directory {
public:
  Directory() = default;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  /// The segment for this hash now, or none.
  DirectoryEntry find(std::uint64_t hash) const {
    Level* level = newest_.load(std::memory_order_acquire);
    if (level == nullptr) return {};
    const DirectoryEntry entry = level->at(hash);
    if (entry) [[likely]]
      return entry;
    return fill(*level, hash);
  }

  /// Makes room for segments of this depth. Errors: no_space, without an effect.
  Status reserve(unsigned depth);

  /// Sets the entry for all hashes that begin with the `entry.depth()` bits of `prefix`. Room for
  /// its depth must be reserved.
  void set(std::uint64_t prefix, DirectoryEntry entry);

  /// Forgets all segments. No other call may run.
  void clear();

  /// Calls visit(prefix, entry) for each segment in the order of their prefixes, until it returns
  /// false.
  template <class Visit>
  void for_each(Visit visit) const {
    const Level* level = newest_.load(std::memory_order_acquire);
    if (level == nullptr) return;
    const unsigned bits = 64 - level->shift;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << bits;) {
      const DirectoryEntry entry = find(i << (64 - bits));
      if (!entry) {
        ++i; // half the hashes, at most, have no segment yet
        continue;
      }
      if (!visit(i >> (bits - entry.depth()), entry)) return;
      i += std::uint64_t{1} << (bits - entry.depth());
    }
  }

private:
  struct Free {
    void operator()(std::atomic<std::uint64_t>* slots) const;
  };
  struct Level {
    unsigned shift = 64; ///< a hash shifted right by this is the index of its slot
    Level* older = nullptr;
    std::unique_ptr<std::atomic<std::uint64_t>[], Free> slots;

    DirectoryEntry at(std::uint64_t hash) const {
      return DirectoryEntry{slots[hash >> shift].load(std::memory_order_acquire)};
    }
  };

  static DirectoryEntry fill(Level& level, std::uint64_t hash);

  std::atomic<Level*> newest_{nullptr};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Level>> levels_;
};

} // namespace nearfar::structures
