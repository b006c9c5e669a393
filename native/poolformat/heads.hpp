// Structures that nearfar stores in a libpmemobj pool; both `persist` and `inspect` use them.
//
// libpmemobj's root object begins with a PoolHead. PoolHead.root is the offset of the root of the
// pool's owner, which is the typed layer or a structure (persist/pool.hpp). The root of the typed
// layer is a StoreHead, followed by the program's root object, which has type 0.
//
// All links are offsets from the pool's start; 0 is a null link. Little-endian, no padding.
//
//   StoreHead.types  ->  TypeEntry[type_count], then LinkEntry[link_count]; TypeEntry.first_link is
//                        the index of the type's first LinkEntry
//   StoreHead.log    ->  the ring of the redo log (redo_log.hpp); none on the undo path
//   StoreHead.chunks ->  DirectoryPage -> DirectoryPage ...; each slot links a chunk or is 0
//   chunk            ->  ChunkHead, bitmap (bit i: object i is allocated), objects of one type
//
// On the undo path each object is an object of libpmemobj, whose type number is the index of its
// TypeEntry + 1, and there is neither log nor directory.
//
// A crash may leave two kinds of chunks without an object: a chunk whose object_bytes is 0, and the
// chunk of a single large object whose bit is clear. The next opening frees both.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::poolformat {

/// First in the root object. Size and offsets are fixed: other programs read it.
struct PoolHead {
  static constexpr std::uint64_t expected_magic = 0x317261667261656e; // "nearfar1"
  std::uint64_t magic;
  std::uint64_t pool_bytes; ///< of the whole file, to know one that was cut
  std::uint64_t root;       ///< offset of the owner's root, on a cache line
  std::uint64_t root_bytes;
  std::uint64_t
      being_zeroed;    ///< offset of memory that is being overwritten before it is freed, or 0
  std::uint64_t flags; ///< bit 0: zero_on_free
  std::uint64_t reserved[2];
};
static_assert(sizeof(PoolHead) == 64);

/// Log that makes transactions durable; fixed when a pool is created.
enum class Path : std::uint32_t {
  redo = 1, ///< one fence: this library's log
  undo = 2, ///< libpmemobj's transactions, which its own tools and recovery know
};

struct StoreHead {
  static constexpr std::uint64_t expected_magic = 0x31726f747366656e; // "nefstor1", stored last
  std::uint64_t magic;
  std::uint64_t layout_hash;
  Path path;
  std::uint32_t type_count;
  std::uint64_t types;
  std::uint64_t log;
  std::uint64_t log_lines;
  std::uint64_t chunks;
  std::uint64_t link_count;
  std::uint64_t log_start; ///< LSN of the oldest record that is needed; on a line of its own
  std::uint64_t reserved[7];
};
static_assert(sizeof(StoreHead) == 128 && offsetof(StoreHead, log_start) == 64);

struct TypeEntry {
  static constexpr std::uint32_t secret = 1; ///< overwritten when freed
  char name[64];                             ///< for people
  std::uint32_t bytes;
  std::uint32_t flags;
  std::uint32_t first_link;
  std::uint32_t link_count;
};
static_assert(sizeof(TypeEntry) == 80);

/// A member that links another object.
struct LinkEntry {
  std::uint32_t offset; ///< in its object
  std::uint32_t target; ///< index of the type it links; of the elements, for an array
  std::uint32_t array;  ///< 1: {link, count of elements}; 0: {link}
  std::uint32_t reserved;
};

struct ChunkHead {
  std::uint64_t chunk_bytes;
  std::uint32_t type;
  std::uint32_t count;        ///< of objects
  std::uint64_t objects;      ///< offset of the first one from the chunk's start
  std::uint64_t object_bytes; ///< from one to the next; stored last
  std::uint64_t reserved[4];
};
static_assert(sizeof(ChunkHead) == 64);

struct DirectoryPage {
  static constexpr std::size_t slot_count = 511;
  std::uint64_t next;
  std::uint64_t slots[slot_count];
};
static_assert(sizeof(DirectoryPage) == 4096);

} // namespace nearfar::poolformat
