// The persistent part of extendible hashing: segments, and the birth word of each.
//
// Layout         chunk k of the table has 4 << (k / 8) segments; births.chunk[k] links as many
//                words, zero at first. A segment is live if its birth word has the current epoch:
//                    epoch : 32 | depth : 6 | prefix : 26
//                Its depth and prefix are those of its creation, and are never changed: later
//                splits follow from the birth words of its children.
// Invariants     a birth word of depth d > 1 has an odd prefix p. The segment was split from its
//                parent, which got depth d and prefix p - 1 by this split; the parent's birth word
//                still has a smaller depth.
// Durability     contents of a segment, fence, birth word, fence: a live segment is complete.
//                Clearing is one store of the epoch; segments of another epoch are free.
// Thread safety  take() by several threads; the others by one thread.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "structures/chunks.hpp"
#include "structures/directory.hpp"
#include "structures/persistence_policy.hpp"

namespace nearfar::structures {

/// In the pool. Zeroed memory is an empty set of segments in epoch 0.
struct SegmentsRoot {
  std::uint64_t epoch;
  std::uint64_t unused[7]; ///< the epoch has a line of its own
  ChunkTable segments;
  ChunkTable births;
};

/// Fields of a birth word.
struct Birth {
  std::uint64_t epoch = 0;
  unsigned depth = 0;
  std::uint64_t prefix = 0;

  static constexpr unsigned prefix_bits = DirectoryEntry::max_depth;
  static Birth of(std::uint64_t word) {
    return {word >> 32, static_cast<unsigned>(word >> prefix_bits & 63),
            word & ((1u << prefix_bits) - 1)};
  }
  std::uint64_t word() const { return epoch << 32 | std::uint64_t{depth} << prefix_bits | prefix; }
  bool sound() const {
    return depth >= 1 && depth <= DirectoryEntry::max_depth && prefix >> depth == 0 &&
           (depth == 1 || (prefix & 1) == 1);
  }
};

/// An allocated segment: its address, and its birth word.
struct Taken {
  std::byte* segment = nullptr;
  std::uint64_t* birth = nullptr;
};

template <class PersistencePolicy, std::size_t segment_bytes>
class Segments {
public:
  Segments(PersistencePolicy& medium, SegmentsRoot& root) : policy_(medium), root_(root) {}

  /// A segment with undefined contents that is not live yet.
  Result<Taken> take() {
    const std::lock_guard guard(mutex_);
    for (;; ++chunk_, next_ = 0) {
      if (chunk_ == ChunkTable::capacity) return full();
      if (Status made = make_chunk(chunk_); !made) return made.error();
      const std::size_t count = chunk_units(chunk_, first);
      auto* births = policy_.template at<std::uint64_t>(root_.births.chunk[chunk_]);
      for (; next_ < count; ++next_)
        if (!is_live(births[next_])) {
          const std::size_t index = next_++;
          return Taken{segment(chunk_, index), births + index};
        }
    }
  }

  /// Makes it live, durably. Its contents must be flushed and fenced.
  void publish(const Taken& taken, unsigned depth, std::uint64_t prefix) {
    policy_.store(*taken.birth, Birth{root_.epoch, depth, prefix}.word());
    policy_.flush(taken.birth, sizeof *taken.birth);
    policy_.fence();
  }

  /// Rebuilds the directory from the birth words. Fails with failed_check if they contradict each
  /// other.
  Status rebuild(Directory& directory) {
    std::vector<Born> all = births();
    std::sort(all.begin(), all.end(),
              [](const Born& a, const Born& b) { return a.birth.depth < b.birth.depth; });
    for (const Born& born : all) {
      const auto& [depth, prefix] = std::pair{born.birth.depth, born.birth.prefix};
      if (!born.birth.sound()) return damaged(born, "impossible depth or prefix");
      if (Status room = directory.reserve(depth); !room) return room;
      const DirectoryEntry parent = directory.find(prefix << (64 - depth));
      if (depth == 1 ? bool(parent) : parent.depth() != depth - 1)
        return damaged(born, depth == 1 ? "the same twice" : "no parent of the depth before");
      if (depth > 1)
        directory.set(prefix - 1, DirectoryEntry(parent.template segment<void>(), depth));
      directory.set(prefix, DirectoryEntry(born.segment, depth));
    }
    return Done{};
  }

  /// Frees all segments at once.
  Status clear() {
    if (root_.epoch == UINT32_MAX)
      return Error::make(Errc::no_space, "a map can be cleared 2^32 times")
          .try_next("load its entries into a new pool");
    policy_.store(root_.epoch, root_.epoch + 1);
    policy_.flush(&root_.epoch, sizeof root_.epoch);
    policy_.fence();
    chunk_ = 0;
    next_ = 0;
    return Done{};
  }

private:
  static constexpr std::size_t first = 4;
  static constexpr std::size_t alignment = std::min<std::size_t>(segment_bytes, 4096);

  struct Born {
    Birth birth;
    std::byte* segment;
    std::uint64_t place; ///< link of the birth word
  };

  bool is_live(std::uint64_t word) const {
    return Birth::of(word).epoch == root_.epoch && Birth::of(word).depth != 0;
  }
  std::byte* segment(unsigned chunk, std::size_t index) const {
    // The link is aligned, not the address: an image of the pool may begin at any cache line.
    const std::uint64_t aligned =
        (root_.segments.chunk[chunk] + alignment - 1) & ~std::uint64_t{alignment - 1};
    return policy_.template at<std::byte>(aligned + index * segment_bytes);
  }
  Status make_chunk(unsigned k) {
    const std::size_t count = chunk_units(k, first);
    if (root_.segments.chunk[k] == 0)
      if (Status made =
              policy_.allocate(&root_.segments.chunk[k],
                               count * segment_bytes + alignment - os::cache_line_bytes, false);
          !made)
        return made;
    if (root_.births.chunk[k] != 0) return Done{};
    return policy_.allocate(&root_.births.chunk[k], count * sizeof(std::uint64_t), true);
  }
  std::vector<Born> births() const {
    std::vector<Born> all;
    for (unsigned k = 0; k < ChunkTable::capacity && root_.births.chunk[k] != 0; ++k) {
      const auto* words = policy_.template at<std::uint64_t>(root_.births.chunk[k]);
      for (std::size_t i = 0; i < chunk_units(k, first); ++i)
        if (is_live(words[i]))
          all.push_back({Birth::of(words[i]), segment(k, i), policy_.link_of(words + i)});
    }
    return all;
  }
  static Error full() {
    return Error::make(Errc::no_space, "the map has taken all chunks its table can link")
        .try_next("split its entries over several maps");
  }
  static Error damaged(const Born& born, const char* why) {
    return Error::make(Errc::failed_check,
                       "the birth word at offset %llu of the pool is damaged: %s",
                       static_cast<unsigned long long>(born.place), why)
        .try_next("restore the pool from a copy");
  }

  PersistencePolicy& policy_;
  SegmentsRoot& root_;
  std::mutex mutex_;
  unsigned chunk_ = 0;
  std::size_t next_ = 0;
};

} // namespace nearfar::structures
