// Memory for nodes: slabs of equal slots in chunks of the pool; which slots are free is kept only
// in DRAM.
//
// Recovery       by reachability: which nodes are free is not persistent, so that allocating and
//                freeing a node costs no flush and no fence, and nothing can leak. At open the
//                structure walks its nodes and claims each; all others are free. The walk costs
//                about 10 ns a node in the cache, otherwise a miss.
// Slabs          16 KiB for slots of one size (16 bytes to 8 KiB); larger nodes take adjacent whole
//                slabs, up to 1 MiB. The first node claimed in a slab determines its slot size.
// Durability     the links of chunks appear with their memory (PersistencePolicy::allocate). A node
//                that is not linked when power fails is free afterwards.
// Thread safety  take() and give_back() of NodeHeap may be called by several threads; other members
//                only while no other thread calls one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "structures/chunks.hpp"
#include "structures/persistence_policy.hpp"

namespace nearfar::structures {

inline constexpr std::size_t slab_bytes = 16 << 10;
inline constexpr std::size_t largest_node_bytes = 1 << 20;

/// The volatile part: the slots of each slab that are in use. Has only links, no memory.
class VolatileSlabIndex {
public:
  /// The link of free memory for a node, or 0 if no chunk has any.
  std::uint64_t take(std::size_t bytes);
  void give_back(std::uint64_t link, std::size_t bytes);
  /// Claims the memory of an existing node. False if no node of this size can be there: outside of
  /// all chunks, across slots, or over another node.
  bool claim(std::uint64_t link, std::size_t bytes);

  /// Whether a slot of the smallest size could begin at `link`.
  bool contains(std::uint64_t link) const;
  /// Chunks are added in the order of their links' table.
  void add_chunk(std::uint64_t link, std::size_t slabs);
  /// Frees everything.
  void reset();

  /// Bytes of the medium that a node of this size takes, including its part of the slab's unused
  /// bytes.
  static std::size_t footprint(std::size_t bytes);

private:
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr unsigned classes = 36;

  struct Slab {
    std::uint32_t slot_bytes = 0; ///< 0: free; slab_bytes: one of a row of whole slabs
    std::uint32_t used = 0;
    std::uint32_t position = none;  ///< in the list of its class, or among the free
    std::uint32_t hint = 0;         ///< words of the map below it are full
    std::vector<std::uint64_t> map; ///< a bit for each slot
  };
  struct Chunk {
    std::uint64_t link;
    std::uint32_t first; ///< index of its first slab
    std::uint32_t slabs;
  };

  static unsigned class_of(std::size_t bytes);
  static std::size_t slot_size(unsigned size_class);

  const Chunk* chunk_of(std::uint64_t link) const;
  std::vector<std::uint32_t>& list_of(const Slab& slab);
  void enlist(std::uint32_t slab);
  void delist(std::uint32_t slab);
  void assign(std::uint32_t slab, std::size_t slot_bytes);
  void set_free(std::uint32_t slab);
  void set_slot(std::uint32_t slab, std::size_t slot);
  std::uint32_t free_slab();
  std::uint64_t take_row(std::uint32_t count);
  bool claim_row(std::uint32_t slab, const Chunk& chunk, std::uint32_t count);

  std::vector<Chunk> chunks_;          ///< in the order they were added
  std::vector<std::uint32_t> by_link_; ///< the same, sorted by link
  std::vector<Slab> slabs_;
  std::vector<std::uint64_t> links_;                        ///< of the slabs
  std::array<std::vector<std::uint32_t>, classes> partial_; ///< slabs with room, by class
  std::vector<std::uint32_t> free_;                         ///< unused slabs
  std::size_t next_row_ = 0; ///< the chunk where the search for a row begins
};

/// The heap of a structure on a medium.
template <class PersistencePolicy>
class NodeHeap {
public:
  /// Reads the table of chunks; claims no node.
  NodeHeap(PersistencePolicy& medium, ChunkTable& table) : policy_(medium), table_(table) {
    for (; chunks_ < ChunkTable::capacity && table_.chunk[chunks_] != 0; ++chunks_)
      index_.add_chunk(table_.chunk[chunks_], chunk_units(chunks_, first));
  }

  /// Memory for a node; undefined contents. Fails with no_space or bad_input (over 1 MiB).
  Result<std::uint64_t> take(std::size_t bytes) {
    if (bytes > largest_node_bytes)
      return Error::make(Errc::bad_input, "a node of %zu bytes is over the limit of 1 MiB", bytes)
          .try_next("split the value over several keys");
    const std::lock_guard guard(mutex_);
    for (;;) {
      if (const std::uint64_t link = index_.take(bytes); link != 0) return link;
      if (Status made = add_chunk(bytes); !made) return made.error();
    }
  }
  void give_back(std::uint64_t link, std::size_t bytes) {
    const std::lock_guard guard(mutex_);
    index_.give_back(link, bytes);
  }
  /// Whether a node can be at this link.
  bool contains(std::uint64_t link) const { return index_.contains(link); }
  bool claim(std::uint64_t link, std::size_t bytes) { return index_.claim(link, bytes); }
  /// Frees everything.
  void reset() { index_.reset(); }

private:
  static constexpr std::size_t first = 4;

  Status add_chunk(std::size_t bytes) {
    const std::size_t needed = (bytes + slab_bytes - 1) / slab_bytes;
    do {
      if (chunks_ == ChunkTable::capacity)
        return Error::make(Errc::no_space, "the structure has taken all chunks its table can link")
            .try_next("split its entries over several structures");
      const std::size_t slabs = chunk_units(chunks_, first);
      if (Status made = policy_.allocate(&table_.chunk[chunks_], slabs * slab_bytes, false); !made)
        return made;
      index_.add_chunk(table_.chunk[chunks_++], slabs);
    } while (chunk_units(chunks_ - 1, first) < needed);
    return Done{};
  }

  PersistencePolicy& policy_;
  ChunkTable& table_;
  std::mutex mutex_;
  VolatileSlabIndex index_;
  unsigned chunks_ = 0;
};

} // namespace nearfar::structures
