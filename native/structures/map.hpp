// A persistent hash map: extendible hashing over buckets of one cache line.
//
// Shape          a directory in DRAM (directory.hpp) leads from the top bits of a hash to a segment
//                of `groups` groups of 16 buckets; a bucket is a line of four slots (value, word).
//                An entry is in one of four successive buckets of its group, from its home on.
//                A group without room splits its segment.
// Word           the hash with two bits replaced: the top bit is 1 (the segment's prefix has the
//                real bit), and the lowest bit of the group's number is the mark of the bucket in
//                its first word, 0 in others (the slot's place has the real bit). No entry's word
//                is 0 without the mark, so 0 means free. Keys of up to 8 bytes are the hash itself
//                (a bijection); other keys, and values over 8 bytes, are in a record that the value
//                word links.
// Invariants     a slot holds an entry if its word has the bits of its segment's prefix; otherwise
//                it is free (a split leaves the words of moved entries, whose slots are then free).
//                A key is in at most one slot. A record is linked by one slot. A bucket is marked
//                if it is the home of an entry in another bucket; marks are rebuilt at open, and
//                not flushed.
// Durability     insert: [record, flush, fence,] value, word - in this order in one line - flush,
//                fence. Replace: [record, flush, fence,] value, flush, fence. Remove: word = 0
//                but for the mark, flush, fence; then its record is free. Split: contents of the
//                new segment, flush, fence, its birth word (segments.hpp), flush, fence; then the
//                slots of moved entries are free in the old segment. Clear: one store of the epoch,
//                flush, fence. Every call but bulk_load() is atomic, and durable when it returns.
//                Opening only stores marks.
// Memory         records are allocated by node_heap.hpp (recovery by reachability), without leaks
//                and fences. Slots of removed entries are reused; only clear() frees segments.
// Growth         a split moves the entries of one segment (16 KiB). Meanwhile operations on this
//                segment wait, and those on segments with the same locks: the ones whose prefixes
//                have the same first 6 bits. Others do not wait.
// Thread safety  get, get_many, contains, insert, put, remove by any number of threads: writers
//                exclude each other by group, readers acquire no lock and never see data that is
//                not durable yet. size() is exact when no writer runs. No writer may run during
//                open, bulk_load, for_each and verify, and no other thread at all during clear: it
//                frees the segments and records that a reader may use. clear() refuses if it finds
//                a lock held, but readers hold none.
// Errors         no_space (pool full, or 2^26 segments): without an effect. bad_input: an entry
//                over 1 MiB. failed_check: the pool is damaged. os_error: msync failed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "structures/hash.hpp"
#include "structures/line_words.hpp"
#include "structures/records.hpp"
#include "structures/segments.hpp"
#include "structures/seqlock.hpp"
#include "structures/stored.hpp"

namespace nearfar::structures {

/// In the pool, on a cache line. Zeroed memory is an empty map.
struct MapRoot {
  SegmentsRoot segments;
  ChunkTable records;
};

template <class PersistencePolicy, class Key, class Value, unsigned groups = 16>
class Map {
  using K = Stored<Key>;
  using V = Stored<Value>;

public:
  using KeyIn = std::remove_cvref_t<typename K::In>;

  /// Recovers the map at `root`. Fails with failed_check if it is damaged.
  static Result<std::unique_ptr<Map>> open(PersistencePolicy& medium, MapRoot& root) {
    std::unique_ptr<Map> map(new Map(medium, root));
    if (Status found = map->recover(false); !found) return found.error();
    return map;
  }

  /// False, without an effect, if the key is there.
  Result<bool> insert(typename K::In key, typename V::In value) { return store(key, value, false); }
  /// Inserts or replaces; true if the key was not there.
  Result<bool> put(typename K::In key, typename V::In value) { return store(key, value, true); }

  bool get(typename K::In key, typename V::Out& value) const { return look(key, &value); }
  bool contains(typename K::In key) const { return look(key, nullptr); }
  /// Looks up all keys: found[i], and then values[i]. Lines are fetched `fetched_ahead` keys in
  /// advance, so that cache misses overlap. Each look-up is as by get(); all together are not
  /// atomic. The spans have the same length.
  void get_many(std::span<const KeyIn> keys, std::span<typename V::Out> values,
                std::span<bool> found) const;

  /// True if the key was there.
  Result<bool> remove(typename K::In key) {
    const std::uint64_t hash = hash_of(key);
    for (;;) {
      const DirectoryEntry entry = directory_.find(hash);
      if (!entry) return false;
      __builtin_prefetch(bucket(entry, hash, 0), 1);
      const std::lock_guard guard(lock_of(entry, hash));
      if (directory_.find(hash) != entry) continue;
      MapSlot* slot = find(entry, hash, key, [] { return true; });
      if (slot == nullptr) return false;
      const std::uint64_t value = slot->value;
      policy_.store(slot->word, slot->word & mark);
      policy_.flush(&slot->word, sizeof slot->word);
      policy_.fence();
      lock_of(entry, hash).add_live(-1);
      if constexpr (!in_words) records_.free(value);
      return settled(true);
    }
  }

  std::size_t size() const {
    std::int64_t sum = 0;
    for (const SeqLock& lock : locks_)
      sum += lock.live.load(std::memory_order_relaxed);
    return static_cast<std::size_t>(sum);
  }

  /// Fails with bad_input, without an effect, if it detects a writer.
  Status clear() {
    const std::unique_lock no_creation(creation_mutex_, std::try_to_lock);
    if (!no_creation || std::ranges::any_of(locks_, &SeqLock::is_held))
      return Error::make(Errc::bad_input, "the map cannot be cleared while a thread writes to it")
          .try_next("stop all threads that use the map before clear()");
    if (Status cleared = segments_.clear(); !cleared) return cleared;
    forget();
    return Done{};
  }

  /// Puts all pairs (key, value), with few fences. All are durable when it returns; a crash before
  /// that may leave any part of them.
  template <class Pairs>
  Status bulk_load(const Pairs& pairs);

  /// Calls visit(key, value) for each entry, in any order.
  template <class Visit>
  void for_each(Visit visit) const {
    directory_.for_each([&](std::uint64_t prefix, DirectoryEntry entry) {
      each_live(prefix, entry, [&](const MapSlot& slot, std::uint64_t hash) {
        typename K::Out key;
        typename V::Out value;
        if (read(slot.value, hash, &key, &value, [] { return true; })) visit(key, value);
        return true;
      });
      return true;
    });
  }

  /// Checks all invariants again, only from the pool. Fails with failed_check, which names the
  /// offset of the error.
  Status verify() const {
    Map fresh(policy_, root_);
    if (Status found = fresh.recover(true); !found) return found;
    if (fresh.size() == size()) return Done{};
    return Error::make(Errc::failed_check, "the map counts %zu entries and holds %zu", size(),
                       fresh.size());
  }

private:
  static constexpr bool in_words = K::fits_word && V::fits_word;
  static constexpr bool key_in_word = K::fits_word;
  static_assert(groups >= 2 && std::has_single_bit(groups), "a word needs a bit for the mark");
  static constexpr std::uint64_t top = std::uint64_t{1} << 63;
  static constexpr unsigned buckets = 16;           ///< to a group
  static constexpr std::uint64_t mark = buckets;    ///< the lowest bit of a group's number
  static constexpr unsigned slots = slots_per_line; ///< to a bucket
  static constexpr unsigned window = 4;             ///< buckets that an entry may be in
  static constexpr std::size_t segment_slots = std::size_t{groups} * buckets * slots;
  static constexpr std::size_t fetched_ahead = 32;
  static constexpr unsigned row_bits = 6; ///< top bits of a hash, which choose a row of locks

  struct MapSlot {
    std::uint64_t value;
    std::uint64_t word; ///< after the value: a line becomes durable in the order of its stores
  };
  static_assert(sizeof(MapSlot) * slots == os::cache_line_bytes);
  static constexpr std::size_t segment_bytes = segment_slots * sizeof(MapSlot);
  struct Probe {
    MapSlot* found = nullptr;
    MapSlot* free = nullptr;
  };

  Map(PersistencePolicy& medium, MapRoot& root)
      : policy_(medium), root_(root), segments_(medium, root.segments),
        records_(medium, root.records) {}

  static std::uint64_t hash_of(typename K::In key) {
    if constexpr (key_in_word)
      return mix(K::word(key));
    else
      return hash_bytes(K::bytes(key));
  }
  static unsigned group_of(std::uint64_t hash) {
    return static_cast<unsigned>(hash / buckets) % groups;
  }
  static MapSlot* bucket(DirectoryEntry entry, std::uint64_t hash, unsigned step) {
    const std::size_t line = group_of(hash) * buckets + (hash + step) % buckets;
    return entry.segment<MapSlot>() + line * slots;
  }
  static std::uint64_t word_of(std::uint64_t hash) { return (hash | top) & ~mark; }
  static bool marked(const MapSlot* line) { return (load(line->word) & mark) != 0; }
  /// The place of a slot in its segment.
  static std::size_t place_of(DirectoryEntry entry, const MapSlot* slot) {
    return static_cast<std::size_t>(slot - entry.template segment<MapSlot>());
  }
  /// The locks of a segment, one for each group: a row, chosen by the first `row_bits` bits of the
  /// segment's prefix. Several segments of a greater depth share a row. A segment of a smaller
  /// depth has the same row for all of its hashes.
  std::span<SeqLock, groups> locks_of(DirectoryEntry entry, std::uint64_t hash) const {
    const std::size_t row = (hash & entry.mask()) >> (64 - row_bits);
    return std::span<SeqLock, groups>(&locks_[row * groups], groups);
  }
  SeqLock& lock_of(DirectoryEntry entry, std::uint64_t hash) const {
    return locks_of(entry, hash)[group_of(hash)];
  }
  Result<bool> settled(bool result) const {
    if (policy_.failed()) return sync_failed();
    return result;
  }

  /// The first free slot of the line, whose word does not have the bits of the segment's prefix, or
  /// null.
  static MapSlot* unused(MapSlot* line, std::uint64_t word, std::uint64_t mask) {
    const unsigned found = ~slots_with(line, word, mask) & all_slots;
    return found != 0 ? line + std::countr_zero(found) : nullptr;
  }

  /// The slot of the key in this line, or null.
  template <class Still>
  MapSlot* find_in(MapSlot* line, std::uint64_t hash, typename K::In key, Still still) const {
    for (unsigned found = slots_with(line, word_of(hash), ~mark); found != 0; found &= found - 1) {
      MapSlot* slot = line + std::countr_zero(found);
      if (is_key(slot->value, key, still)) return slot;
    }
    return nullptr;
  }
  /// The slot of the key, or null.
  template <class Still>
  MapSlot* find(DirectoryEntry entry, std::uint64_t hash, typename K::In key, Still still) const {
    MapSlot* home = bucket(entry, hash, 0);
    if (MapSlot* slot = find_in(home, hash, key, still)) [[likely]]
      return slot;
    return marked(home) ? find_away(entry, hash, key, still) : nullptr;
  }
  /// A function of its own for the few look-ups that come here: the code of all others stays short,
  /// so that a core has more of them in flight.
  template <class Still>
  [[gnu::noinline]] MapSlot* find_away(DirectoryEntry entry, std::uint64_t hash, typename K::In key,
                                       Still still) const {
    MapSlot* slot = nullptr;
    for (unsigned i = 1; i < window && slot == nullptr; ++i)
      slot = find_in(bucket(entry, hash, i), hash, key, still);
    return slot;
  }
  /// For the holder of the lock: the slot of the key, or the first free one for it.
  Probe probe(DirectoryEntry entry, std::uint64_t hash, typename K::In key) const {
    if (MapSlot* slot = find(entry, hash, key, [] { return true; })) return {slot, nullptr};
    MapSlot* free = nullptr;
    for (unsigned i = 0; i < window && free == nullptr; ++i)
      free = unused(bucket(entry, hash, i), word_of(hash), entry.mask());
    return {nullptr, free};
  }
  /// Stores a new entry in a free slot and begins its write-back.
  void fill(DirectoryEntry entry, std::uint64_t hash, MapSlot* slot, std::uint64_t value) {
    MapSlot* home = bucket(entry, hash, 0);
    if (slot - home >= slots || slot < home)
      if (!marked(home)) policy_.store(home->word, home->word | mark);
    policy_.store(slot->value, value);
    policy_.store(slot->word, word_of(hash) | (slot->word & mark));
    policy_.flush(slot, sizeof *slot);
  }

  template <class Still>
  bool is_key(const std::uint64_t& value, typename K::In key, Still still) const {
    if constexpr (key_in_word)
      return true;
    else
      return records_.has_key(load(value), K::bytes(key), still);
  }

  /// Reads key and value from a value word; either may be null. False if the word has changed.
  template <class Still>
  bool read(std::uint64_t word, std::uint64_t hash, typename K::Out* key, typename V::Out* value,
            Still still) const {
    if constexpr (key_in_word)
      if (key != nullptr) *key = K::of_word(unmix(hash));
    if constexpr (in_words) {
      if (value != nullptr) *value = V::of_word(word);
      return true;
    } else {
      std::string key_bytes;
      std::string value_bytes;
      const bool wants_key = key != nullptr && !key_in_word;
      if (!records_.read(word, wants_key ? &key_bytes : nullptr,
                         value != nullptr ? &value_bytes : nullptr, still))
        return false;
      if constexpr (!key_in_word)
        if (wants_key && !K::assign(*key, key_bytes)) return false;
      return value == nullptr || V::assign(*value, value_bytes);
    }
  }

  bool look(typename K::In key, typename V::Out* value) const;
  void fetch(typename K::In key) const;
  Result<bool> store(typename K::In key, typename V::In value, bool replace);
  std::uint64_t set(DirectoryEntry entry, std::uint64_t hash, Probe at, std::uint64_t value);
  Result<std::uint64_t> value_word(typename K::In key, typename V::In value);
  /// Insertion for the bulk loader, without lock and fence. Returns the replaced record, or 0.
  Result<std::uint64_t> publish(typename K::In key, std::uint64_t value);
  Status publish_all(const std::vector<std::uint64_t>& words, auto from);
  Status create_first_segment(std::uint64_t hash);
  Status split(std::uint64_t hash);
  void move_upper(DirectoryEntry from, MapSlot* to, std::uint64_t word, unsigned depth);

  template <class Visit>
  bool each_live(std::uint64_t prefix, DirectoryEntry entry, Visit visit) const;
  Status recover(bool thorough);
  bool sound(const MapSlot& slot, DirectoryEntry entry, std::uint64_t hash, bool thorough);
  void mark_homes(std::uint64_t prefix, DirectoryEntry entry);
  void forget();

  PersistencePolicy& policy_;
  MapRoot& root_;
  Segments<PersistencePolicy, segment_bytes> segments_;
  Records<PersistencePolicy> records_;
  Directory directory_;
  std::mutex creation_mutex_; ///< of first segments
  mutable std::array<SeqLock, groups << row_bits> locks_;
};

} // namespace nearfar::structures

#include "structures/map_impl.hpp" // IWYU pragma: export
