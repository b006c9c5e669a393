// The replay of libpmemobj's logs, and walks of the three maps as bytes (see pmdk.hpp). The parser
// of logs and the walk of the heap are those of `nearfar pool check`, compiled once more, watched.
#include <algorithm>
#include <cstring>

#include "crash/tool/pmdk.hpp"
#include "inspect/descriptor.hpp"
#include "inspect/log.hpp"
#include "inspect/objects.hpp"

namespace nearfar::crash {

namespace {

using inspect::Descriptor;
using inspect::Findings;
using inspect::LogEntry;
using inspect::LogKind;
using inspect::Offset;

constexpr Offset internal_at = 0;
constexpr Offset external_at = inspect::log_head_bytes + inspect::internal_capacity;
constexpr Offset undo_at = external_at + inspect::log_head_bytes + inspect::external_capacity;

/// What libpmemobj's recovery does to a pool in memory.
class Replay {
public:
  Replay(const Descriptor& descriptor, std::vector<std::uint64_t> lanes)
      : descriptor_(descriptor), lanes_(std::move(lanes)) {}

  /// Returns what is wrong with the logs, or null.
  const char* run(std::byte* pool, std::size_t bytes) {
    pool_ = pool;
    bytes_ = bytes;
    bool sound = true;
    for (const std::uint64_t lane : lanes_)
      sound = take(LogKind::internal, lane, internal_at) &&
              take(LogKind::external, lane, external_at) && sound;
    for (const std::uint64_t lane : lanes_)
      sound = take(LogKind::undo, lane, undo_at) && sound;
    return sound ? nullptr : "a log of libpmemobj is damaged";
  }

private:
  bool take(LogKind kind, std::uint64_t lane, Offset within) {
    const inspect::MemoryView source({pool_, bytes_});
    inspect::Window window(source);
    inspect::Extensions seen;
    Findings findings;
    const Offset at = descriptor_.lanes_offset + lane * pmdk::lane_bytes + within;
    const inspect::Log log = read_log(window, descriptor_, kind, at, seen, findings);
    if (findings.damage_count() != 0) return false;
    if (log.pending)
      for (const LogEntry& entry : log.entries)
        apply(entry);
    return true;
  }

  void apply(const LogEntry& entry) {
    std::byte* at = pool_ + entry.target;
    auto* word = reinterpret_cast<std::uint64_t*>(at);
    switch (entry.operation) {
    case inspect::Operation::set: *word = entry.value; return;
    case inspect::Operation::bit_and: *word &= entry.value; return;
    case inspect::Operation::bit_or: *word |= entry.value; return;
    case inspect::Operation::fill:
      std::memset(at, std::to_integer<int>(pool_[entry.data]), entry.bytes);
      return;
    case inspect::Operation::copy: std::memcpy(at, pool_ + entry.data, entry.bytes); return;
    }
  }

  const Descriptor& descriptor_;
  std::vector<std::uint64_t> lanes_;
  std::byte* pool_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A persistent handle as it lies in the pool.
struct Handle {
  std::uint64_t pool;
  std::uint64_t offset;
};

/// Linear hashing as in structures/linear_hashing.hpp, implemented independently: buckets come one
/// at a time, and their heads lie in segments that double.
struct Hash {
  std::uint32_t a, b;
  std::uint64_t p;
  std::uint64_t bucket(std::uint64_t key, std::uint64_t buckets) const {
    std::uint64_t round = 10;
    while (2 * round <= buckets)
      round *= 2;
    const std::uint64_t hash = (a * key + b) % p;
    return hash % (2 * round) < buckets ? hash % (2 * round) : hash % round;
  }
};
template <class Head>
struct Buckets {
  std::uint64_t count;
  Handle segment[32];
};

/// Objects that links lead to, and the walk of a map by them.
class Walk {
public:
  Walk(const std::byte* pool, std::size_t bytes, std::uint64_t uuid, Contents& found)
      : pool_(pool), bytes_(bytes), uuid_(uuid), found_(found) {}

  /// The object that a handle names, `count` of T; null, and broken, if it cannot lie there.
  template <class T>
  const T* follow(const Handle& handle, std::uint64_t count = 1) {
    if (handle.pool == uuid_ && handle.offset % 8 == 0 && handle.offset < bytes_ &&
        count <= (bytes_ - handle.offset) / sizeof(T)) {
      reached_.push_back(handle.offset);
      return reinterpret_cast<const T*>(pool_ + handle.offset);
    }
    fail("a handle leads out of the pool");
    return nullptr;
  }
  void entry(std::uint64_t key, const Handle& value) {
    if (value.offset != ~value.pool) fail("the value of an entry is torn");
    found_.emplace_back(key, value.pool);
  }
  void fail(const char* why) {
    if (broken_ == nullptr) broken_ = why;
  }
  const char* broken() const { return broken_; }
  std::vector<Offset>& reached() { return reached_; }

private:
  const std::byte* pool_;
  std::size_t bytes_;
  std::uint64_t uuid_; ///< of the pool, in every handle
  Contents& found_;
  std::vector<Offset> reached_;
  const char* broken_ = nullptr;
};

/// Calls visit(bucket, head) for the heads of all buckets.
template <class Head, class Visit>
void each_head(Walk& walk, const Buckets<Head>& buckets, const Visit& visit) {
  std::uint64_t first = 0;
  std::uint64_t size = 10; // of a segment: as many as all before it
  for (const Handle& handle : buckets.segment) {
    const Head* head = handle.offset != 0 ? walk.follow<Head>(handle, size) : nullptr;
    if (head == nullptr && first < buckets.count)
      return walk.fail("a segment of buckets is missing");
    for (std::uint64_t i = 0; i < size && first + i < buckets.count; ++i)
      visit(first + i, head[i]);
    first += size;
    size = first;
  }
}

/// map_tx: heads of singly linked chains.
struct TxMap {
  Hash hash;
  std::uint64_t entries;
  Buckets<Handle> buckets;

  struct Entry {
    std::uint64_t key;
    Handle value;
    Handle next;
  };
  void walk(Walk& walk) const {
    std::uint64_t count = 0;
    each_head(walk, buckets, [&](std::uint64_t bucket, const Handle& head) {
      for (const Handle* link = &head; link->offset != 0; ++count) {
        const auto* entry = walk.follow<Entry>(*link);
        if (entry == nullptr) return;
        if (hash.bucket(entry->key, buckets.count) != bucket)
          return walk.fail("an entry is in another's bucket");
        walk.entry(entry->key, entry->value);
        link = &entry->next;
      }
    });
    if (count != entries) walk.fail("its size is not the number of entries");
  }
};

/// map_atomic: heads of circular lists. While the last bucket is split off or joined, its entries
/// may be in that bucket or in the one it comes from.
struct AtomicMap {
  Hash hash;
  std::uint64_t entries;
  std::uint64_t entries_dirty;

  struct Head {
    Handle first;
    std::byte lock[64];
  };
  Buckets<Head> buckets;

  struct Entry {
    std::uint64_t key;
    Handle value;
    Handle next;
    Handle previous;
  };
  bool may_lie(std::uint64_t key, std::uint64_t bucket) const {
    const std::uint64_t home = hash.bucket(key, buckets.count);
    if (home == bucket) return true;
    const std::uint64_t last = buckets.count - 1;
    return hash.bucket(key, last) == bucket && home == last && last >= 10;
  }
  std::uint64_t walk_list(Walk& walk, const Handle& first, std::uint64_t bucket) const {
    std::uint64_t count = 0;
    for (const Handle* link = &first; link->offset != 0;) {
      const auto* entry = walk.follow<Entry>(*link);
      if (entry == nullptr) return count;
      if (!may_lie(entry->key, bucket)) walk.fail("an entry is in another's bucket");
      walk.entry(entry->key, entry->value);
      link = &entry->next;
      ++count;
      if (link->offset == first.offset) break;
    }
    return count;
  }
  void walk(Walk& walk) const {
    std::uint64_t count = 0;
    each_head(walk, buckets, [&](std::uint64_t bucket, const Head& head) {
      count += walk_list(walk, head.first, bucket);
    });
    if (entries_dirty == 0 && count != entries) walk.fail("its size is not the number of entries");
  }
};

/// map_rp: an array of slots.
struct RpMap {
  std::uint64_t entries;
  std::uint64_t capacity;
  std::uint64_t grow_at;
  Handle slots;

  struct Slot {
    std::uint64_t key;
    Handle value;
    std::uint64_t hash;
    bool used() const { return hash != 0 && hash >> 63 == 0; }
  };
  void walk(Walk& walk) const {
    const auto* slot = walk.follow<Slot>(slots, capacity);
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; slot != nullptr && i < capacity; ++i) {
      if (!slot[i].used()) continue;
      walk.entry(slot[i].key, slot[i].value);
      ++count;
    }
    if (count != entries) walk.fail("its size is not the number of entries");
  }
};

/// Allocated objects against those that are reached.
class Balance final : public inspect::ObjectSink {
public:
  explicit Balance(std::vector<Offset>& reached) : reached_(reached) {
    std::sort(reached_.begin(), reached_.end());
  }
  void object(const inspect::Object& object) override {
    if (object.internal) return;
    while (next_ < reached_.size() && reached_[next_] < object.offset)
      ++next_, ++free_;
    if (next_ < reached_.size() && reached_[next_] == object.offset)
      ++next_;
    else
      leaked_ += object.block_bytes;
  }
  std::uint64_t leaked_bytes() const { return leaked_; }
  /// Objects that are reached, but free.
  std::uint64_t free() const { return free_ + reached_.size() - next_; }

private:
  std::vector<Offset>& reached_;
  std::size_t next_ = 0;
  std::uint64_t leaked_ = 0;
  std::uint64_t free_ = 0;
};

template <class Map>
class PmdkSubject final : public Checked {
public:
  PmdkSubject(const Descriptor& descriptor, std::vector<std::uint64_t> lanes, Library& library)
      : descriptor_(descriptor), replay_(descriptor_, std::move(lanes)), library_(library) {}

  const char* open(std::byte* pool, std::size_t bytes, const Moment&) override {
    failure_ = Failure::none;
    pool_ = pool;
    bytes_ = bytes;
    return replay_.run(pool, bytes);
  }
  const char* contents(Contents& found) override {
    const auto& root = *reinterpret_cast<const Handle*>(pool_ + descriptor_.root_offset);
    Walk walk(pool_, bytes_, root.pool, found);
    const auto* map = walk.follow<Map>(root);
    if (map != nullptr) map->walk(walk);
    if (walk.broken() != nullptr) return walk.broken();
    Balance balance(walk.reached());
    const inspect::MemoryView source({pool_, bytes_});
    Findings findings;
    inspect::ObjectWalker walker(source, findings, balance);
    walk_heap(source, descriptor_, findings,
              [&](const inspect::ChunkGroup& chunk) { walker.walk(chunk); });
    if (findings.damage_count() != 0) return "the heap of libpmemobj is damaged";
    if (balance.free() != 0) return "memory that the map reaches is free";
    leaked_ = balance.leaked_bytes();
    return nullptr;
  }
  std::uint64_t leaked_bytes() override { return leaked_; }
  void close() override {}
  Failure failure() const override { return failure_; }

  const char* confirm(const Moment&, const Contents& found) override {
    Contents theirs;
    failure_ = library_.look(theirs, why_);
    if (failure_ != Failure::none) return why_.c_str();
    if (theirs == found) return nullptr;
    failure_ = Failure::disagreed;
    return "libpmemobj recovers something else than the replay of its logs";
  }

private:
  Descriptor descriptor_;
  Replay replay_;
  Library& library_;
  std::byte* pool_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t leaked_ = 0;
  Failure failure_ = Failure::none;
  std::string why_;
};

/// Lanes that are not as a new pool has them, or that the program stored into.
std::vector<std::uint64_t> lanes_in_use(const Descriptor& descriptor, const storelog::Log& log) {
  std::vector<bool> used(descriptor.lane_count);
  const auto take = [&](Offset begin, Offset end) {
    begin = std::max(begin, descriptor.lanes_offset) - descriptor.lanes_offset;
    for (Offset lane = begin / pmdk::lane_bytes;
         lane < used.size() && descriptor.lanes_offset + lane * pmdk::lane_bytes < end; ++lane)
      used[lane] = true;
  };
  for (const storelog::Event& event : log.events)
    if (event.kind == storelog::EventKind::store || event.kind == storelog::EventKind::nt_store)
      take(event.address, event.address + event.bytes);
  for (std::size_t lane = 0; lane < used.size(); ++lane) {
    const Offset at = descriptor.lanes_offset + lane * pmdk::lane_bytes;
    for (const Offset within : {internal_at, external_at, undo_at})
      if (inspect::load<std::uint64_t>(&log.image[at + within + inspect::log_head_bytes]) != 0)
        used[lane] = true;
  }
  std::vector<std::uint64_t> lanes;
  for (std::size_t lane = 0; lane < used.size(); ++lane)
    if (used[lane]) lanes.push_back(lane);
  return lanes;
}

} // namespace

std::unique_ptr<Checked> pmdk_subject(std::string_view structure, const Trace& trace,
                                      Library& library) {
  Findings findings;
  const Descriptor descriptor = read_descriptor(inspect::MemoryView(trace.log.image), findings);
  if (!descriptor.usable) return nullptr;
  std::vector<std::uint64_t> lanes = lanes_in_use(descriptor, trace.log);
  if (structure == "map_tx")
    return std::make_unique<PmdkSubject<TxMap>>(descriptor, std::move(lanes), library);
  if (structure == "map_atomic")
    return std::make_unique<PmdkSubject<AtomicMap>>(descriptor, std::move(lanes), library);
  return std::make_unique<PmdkSubject<RpMap>>(descriptor, std::move(lanes), library);
}

} // namespace nearfar::crash
