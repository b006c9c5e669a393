// Memory for nodes: slabs of equal slots in chunks of the pool, whose free state is in DRAM alone.
//
// Why            recovery by reachability. Nothing about which node is free is persistent, so that
//                taking and returning a node costs no flush and no fence, and nothing can leak: at
//                open the structure walks its nodes and claims each; all the rest is free. In
//                addition to it stands a walk at open (about 10 ns a node that is in the cache, a
//                miss else).
// Slabs          16 KiB for slots of one size (16 bytes to 8 KiB); larger nodes take whole slabs
//                in a row, up to 1 MiB. A slab's size follows from the first node claimed in it.
// Durability     the links of chunks appear with their memory (PersistencePolicy::allocate). A node
//                that is not linked when the power fails was never taken.
// Thread safety  all members may be called by several threads, but claim() and reset().
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

/// The volatile half: which slots of which slabs are taken. Knows links alone, not memory.
class VolatileSlabIndex {
public:
  /// The link of free memory for a node, or 0 where no chunk has room.
  std::uint64_t take(std::size_t bytes);
  void give_back(std::uint64_t link, std::size_t bytes);
  /// Takes memory that a node has already. False where no node of this size can lie there: outside
  /// of all chunks, across slots, or over another node.
  bool claim(std::uint64_t link, std::size_t bytes);

  /// Whether `link` is where a slot of the smallest size could begin.
  bool contains(std::uint64_t link) const;
  /// Chunks are added in the order of their links' table.
  void add_chunk(std::uint64_t link, std::size_t slabs);
  /// All is free again.
  void reset();
  std::uint64_t taken_bytes() const { return taken_bytes_; }

  /// Bytes of the medium that a node of this size takes, with its part of what its slab cannot use.
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
  std::uint64_t taken_bytes_ = 0;
};

/// The heap of a structure on a medium.
template <class PersistencePolicy>
class NodeHeap {
public:
  NodeHeap(PersistencePolicy& medium, ChunkTable& table) : policy_(medium), table_(table) {
    restart();
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
  /// Whether a node can lie at this link at all.
  bool contains(std::uint64_t link) const { return index_.contains(link); }
  bool claim(std::uint64_t link, std::size_t bytes) { return index_.claim(link, bytes); }
  /// All is free again.
  void reset() { index_.reset(); }
  /// Reads the table of chunks anew; nothing is claimed.
  void restart() {
    index_ = VolatileSlabIndex();
    chunks_ = 0;
    for (; chunks_ < ChunkTable::capacity && table_.chunk[chunks_] != 0; ++chunks_)
      index_.add_chunk(table_.chunk[chunks_], chunk_units(chunks_, first));
  }
  std::uint64_t taken_bytes() const { return index_.taken_bytes(); }

private:
  static constexpr std::size_t first = 4;

  Status add_chunk(std::size_t bytes) {
    const std::size_t rows = (bytes + slab_bytes - 1) / slab_bytes;
    do {
      if (chunks_ == ChunkTable::capacity)
        return Error::make(Errc::no_space, "the structure has taken all chunks its table can link")
            .try_next("split its entries over several structures");
      const std::size_t slabs = chunk_units(chunks_, first);
      if (Status made = policy_.allocate(&table_.chunk[chunks_], slabs * slab_bytes, false); !made)
        return made;
      index_.add_chunk(table_.chunk[chunks_++], slabs);
    } while (chunk_units(chunks_ - 1, first) < rows);
    return Done{};
  }

  PersistencePolicy& policy_;
  ChunkTable& table_;
  std::mutex mutex_;
  VolatileSlabIndex index_;
  unsigned chunks_ = 0;
};

} // namespace nearfar::structures
