// Objects of the redo path: chunks of one type each, whose bitmaps change in the records of the
// log.
//
// take() reserves an object in volatile memory only: a crash ends the reservation. It is allocated
// once a record sets its bit, and free once one clears it. Its memory is reused only when the log
// has advanced past the record that freed it (retire, reclaim): no record can then be replayed over
// it.
// Sizes          objects up to 64 bytes take the next power of two, larger ones whole lines; above
//                8 KiB each has a chunk of its own, which is returned to the pool when it is freed.
// Thread safety  by several threads; retire() and reclaim() by the holder of the commit lock.
// Errors         take(): no_space, without an effect.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.hpp"
#include "persist/storage_view.hpp"
#include "persist/write_back.hpp"
#include "poolformat/heads.hpp"

namespace nearfar::persist {

using poolformat::ChunkHead;
using poolformat::DirectoryPage;

/// The bit that shows whether an object is allocated.
struct BitPlace {
  std::uint64_t word = 0; ///< offset of the bitmap word; 0 if the heap has no such object
  std::uint64_t mask = 0;
  std::uint64_t object_bytes = 0;
};

class PersistentObjectHeap {
public:
  PersistentObjectHeap(const StorageView& storage, std::uint64_t* directory, WriteBack& write_back)
      : storage_(storage), directory_(directory), write_back_(&write_back) {}

  /// Finds the chunks. Call it once, after the log was recovered.
  Status load();

  /// Reserves an object of `bytes` > 0, on a line if it has 64 bytes or more.
  Result<std::uint64_t> take(std::uint32_t type, std::size_t bytes);
  /// Ends a reservation whose object no record has allocated.
  void give_back(std::uint64_t offset);
  /// A record that ends before `lsn` freed the object.
  void retire(std::uint64_t offset, std::uint64_t lsn) { retired_.push_back({offset, lsn}); }
  /// Makes memory available that was freed before `start`; returns whether there was any.
  bool reclaim(std::uint64_t start) {
    return !retired_.empty() && retired_.front().lsn <= start && reclaim_some(start);
  }

  BitPlace bit_of(std::uint64_t offset) const;

private:
  struct Chunk {
    std::uint64_t offset = 0;
    std::uint64_t* slot = nullptr; ///< of the directory
    std::uint32_t type = 0;
    std::uint32_t count = 0;
    std::uint64_t objects = 0;
    std::uint64_t object_bytes = 0;
    std::vector<std::uint64_t> busy; ///< allocated, reserved, or retired
    std::uint32_t room = 0;
    std::uint32_t hint = 0; ///< word where to look first
  };
  struct Retired {
    std::uint64_t offset;
    std::uint64_t lsn;
  };

  std::uint64_t* bitmap(const Chunk& chunk) const {
    return reinterpret_cast<std::uint64_t*>(storage_.base + chunk.offset + sizeof(ChunkHead));
  }
  Status load_slot(std::uint64_t* slot);
  Chunk* add(std::uint64_t* slot);
  Result<Chunk*> make_chunk(std::uint32_t type, std::size_t bytes);
  Result<std::uint64_t*> empty_slot();
  const Chunk* chunk_of(std::uint64_t offset) const;
  void make_free(std::uint64_t offset);
  bool reclaim_some(std::uint64_t start);

  StorageView storage_;
  std::uint64_t* directory_;
  WriteBack* write_back_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::unique_ptr<Chunk>> chunks_; ///< by offset
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<Chunk*>> with_room_;
  std::vector<std::uint64_t*> empty_slots_;
  std::deque<Retired> retired_;
};

} // namespace nearfar::persist
