// The longer members of Map; included only by map.hpp.
#pragma once

#include "structures/map.hpp"

namespace nearfar::structures {

template <class PersistencePolicy, class Key, class Value, unsigned groups>
bool Map<PersistencePolicy, Key, Value, groups>::look(typename K::In key,
                                                      typename V::Out* value) const {
  const std::uint64_t hash = hash_of(key);
  for (;;) {
    const DirectoryEntry entry = directory_.find(hash);
    if (!entry) return false;
    const SeqLock& lock = lock_of(entry, hash);
    const std::uint32_t version = lock.begin();
    const auto still = [&] { return lock.still(version); };
    MapSlot* slot = find(entry, hash, key, still);
    if (slot != nullptr && value != nullptr) read(load(slot->value), hash, nullptr, value, still);
    // A split changes the directory under the lock. If neither has changed, no split came between.
    if (directory_.find(hash) == entry && still()) [[likely]]
      return slot != nullptr;
  }
}

/// Prefetches the line of a key's home.
template <class PersistencePolicy, class Key, class Value, unsigned groups>
void Map<PersistencePolicy, Key, Value, groups>::fetch(typename K::In key) const {
  const std::uint64_t hash = hash_of(key);
  if (const DirectoryEntry entry = directory_.find(hash))
    __builtin_prefetch(bucket(entry, hash, 0));
}

template <class PersistencePolicy, class Key, class Value, unsigned groups>
void Map<PersistencePolicy, Key, Value, groups>::get_many(std::span<const KeyIn> keys,
                                                          std::span<typename V::Out> values,
                                                          std::span<bool> found) const {
  for (const KeyIn& key : keys.first(std::min(fetched_ahead, keys.size())))
    fetch(key);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + fetched_ahead < keys.size()) fetch(keys[i + fetched_ahead]);
    found[i] = look(keys[i], &values[i]);
  }
}

template <class PersistencePolicy, class Key, class Value, unsigned groups>
Result<std::uint64_t> Map<PersistencePolicy, Key, Value, groups>::value_word(typename K::In key,
                                                                             typename V::In value) {
  if constexpr (in_words)
    return V::word(value);
  else
    return records_.write(key_in_word ? std::string_view() : K::bytes(key), V::bytes(value));
}

/// Stores the value in the key's slot, or a new entry in the free slot, and begins the write-back.
/// Returns the replaced value word, or 0.
template <class PersistencePolicy, class Key, class Value, unsigned groups>
std::uint64_t Map<PersistencePolicy, Key, Value, groups>::set(DirectoryEntry entry,
                                                              std::uint64_t hash, Probe at,
                                                              std::uint64_t value) {
  if (at.found == nullptr) {
    fill(entry, hash, at.free, value);
    lock_of(entry, hash).add_live(1);
    return 0;
  }
  const std::uint64_t before = at.found->value;
  policy_.store(at.found->value, value);
  policy_.flush(&at.found->value, sizeof at.found->value);
  return before;
}

template <class PersistencePolicy, class Key, class Value, unsigned groups>
Result<bool> Map<PersistencePolicy, Key, Value, groups>::store(typename K::In key,
                                                               typename V::In value, bool replace) {
  const std::uint64_t hash = hash_of(key);
  for (;;) {
    const DirectoryEntry entry = directory_.find(hash);
    if (!entry) {
      if (Status made = create_first_segment(hash); !made) return made.error();
      continue;
    }
    __builtin_prefetch(bucket(entry, hash, 0), 1);
    {
      const std::lock_guard guard(lock_of(entry, hash));
      if (directory_.find(hash) != entry) continue;
      const Probe at = probe(entry, hash, key);
      if (at.found != nullptr && !replace) return false;
      if (at.found != nullptr || at.free != nullptr) {
        Result<std::uint64_t> word = value_word(key, value);
        if (!word) return word.error();
        if constexpr (!in_words) policy_.fence();
        const std::uint64_t before = set(entry, hash, at, *word);
        policy_.fence();
        if constexpr (!in_words)
          if (before != 0) records_.free(before);
        return settled(at.found == nullptr);
      }
    }
    if (Status made = split(hash); !made) return made.error();
  }
}

template <class PersistencePolicy, class Key, class Value, unsigned groups>
Result<std::uint64_t> Map<PersistencePolicy, Key, Value, groups>::publish(typename K::In key,
                                                                          std::uint64_t value) {
  const std::uint64_t hash = hash_of(key);
  for (;;) {
    const DirectoryEntry entry = directory_.find(hash);
    if (entry) {
      const Probe at = probe(entry, hash, key);
      if (at.found != nullptr || at.free != nullptr) return set(entry, hash, at, value);
    }
    if (Status made = entry ? split(hash) : create_first_segment(hash); !made) return made.error();
  }
}

/// Links a batch of value words to its keys: one fence before, if they are records, and one after.
template <class PersistencePolicy, class Key, class Value, unsigned groups>
Status
Map<PersistencePolicy, Key, Value, groups>::publish_all(const std::vector<std::uint64_t>& words,
                                                        auto from) {
  if constexpr (!in_words) policy_.fence();
  std::vector<std::uint64_t> unlinked; // what was replaced, and what found no room
  std::optional<Error> failed;
  for (std::size_t i = 0; i < words.size(); ++i, ++from) {
    unlinked.push_back(words[i]);
    if (failed) continue;
    Result<std::uint64_t> before = publish(from->first, words[i]);
    if (before)
      unlinked.back() = *before;
    else
      failed = before.error();
  }
  policy_.fence();
  if constexpr (!in_words)
    for (const std::uint64_t link : unlinked)
      if (link != 0) records_.free(link);
  if (failed) return *failed;
  return Done{};
}

template <class PersistencePolicy, class Key, class Value, unsigned groups>
template <class Pairs>
Status Map<PersistencePolicy, Key, Value, groups>::bulk_load(const Pairs& pairs) {
  constexpr std::size_t batch = 256;
  std::vector<std::uint64_t> words;
  for (auto from = std::begin(pairs); from != std::end(pairs);) {
    words.clear();
    auto end = from;
    for (; end != std::end(pairs) && words.size() < batch; ++end) {
      Result<std::uint64_t> word = value_word(end->first, end->second);
      if (!word) {
        if constexpr (!in_words)
          for (const std::uint64_t link : words)
            records_.free(link);
        return word.error();
      }
      words.push_back(*word);
    }
    if (Status made = publish_all(words, from); !made) return made;
    from = end;
  }
  if (policy_.failed()) return sync_failed();
  return Done{};
}

template <class PersistencePolicy, class Key, class Value, unsigned groups>
Status Map<PersistencePolicy, Key, Value, groups>::create_first_segment(std::uint64_t hash) {
  const std::lock_guard guard(creation_mutex_);
  if (directory_.find(hash)) return Done{};
  if (Status room = directory_.reserve(1); !room) return room;
  Result<Taken> taken = segments_.take();
  if (!taken) return taken.error();
  std::memset(taken->segment, 0, segment_bytes);
  policy_.stored(taken->segment, segment_bytes);
  policy_.flush(taken->segment, segment_bytes);
  policy_.fence();
  segments_.publish(*taken, 1, hash >> 63);
  directory_.set(hash >> 63, DirectoryEntry(taken->segment, 1));
  return Done{};
}

template <class PersistencePolicy, class Key, class Value, unsigned groups>
Status Map<PersistencePolicy, Key, Value, groups>::split(std::uint64_t hash) {
  const DirectoryEntry entry = directory_.find(hash);
  struct Held { // writers of the segment wait, its readers try again
    std::span<SeqLock, groups> locks;
    explicit Held(std::span<SeqLock, groups> all) : locks(all) {
      for (SeqLock& lock : locks)
        lock.lock();
    }
    ~Held() {
      for (SeqLock& lock : locks)
        lock.unlock();
    }
  } const held(locks_of(entry, hash));
  if (directory_.find(hash) != entry) return Done{}; // another thread has split it
  const unsigned depth = entry.depth() + 1;
  if (depth > DirectoryEntry::max_depth)
    return Error::make(Errc::no_space, "a map has at most 2^%u segments", DirectoryEntry::max_depth)
        .try_next("split its entries over several maps");
  if (Status room = directory_.reserve(depth); !room) return room;
  Result<Taken> taken = segments_.take();
  if (!taken) return taken.error();
  const std::uint64_t prefix = hash >> (64 - depth) | 1;
  move_upper(entry, reinterpret_cast<MapSlot*>(taken->segment), prefix << (64 - depth) | top,
             depth);
  policy_.stored(taken->segment, segment_bytes);
  const DirectoryEntry lower(entry.template segment<void>(), depth);
  const DirectoryEntry upper(taken->segment, depth);
  mark_homes(prefix, upper);
  policy_.flush(taken->segment, segment_bytes);
  policy_.fence();
  segments_.publish(*taken, depth, prefix);
  mark_homes(prefix - 1, lower);
  directory_.set(prefix - 1, lower);
  directory_.set(prefix, upper);
  return Done{};
}

/// Copies the entries whose word has the top `depth` bits of `word` to the same slots of a new
/// segment, whose other slots become free. In the old segment, the slots of these entries are free
/// once the directory has its new depth.
template <class PersistencePolicy, class Key, class Value, unsigned groups>
void Map<PersistencePolicy, Key, Value, groups>::move_upper(DirectoryEntry from, MapSlot* to,
                                                            std::uint64_t word, unsigned depth) {
  const MapSlot* slot = from.template segment<MapSlot>();
  const std::uint64_t mask = ~std::uint64_t{0} << (64 - depth);
  for (std::size_t i = 0; i < segment_slots; ++i) {
    const bool moves = ((slot[i].word ^ word) & mask) == 0;
    to[i].value = moves ? slot[i].value : 0;
    to[i].word = moves ? slot[i].word & ~mark : 0;
  }
}

/// Calls visit(slot, hash) for each entry of a segment until it returns false.
template <class PersistencePolicy, class Key, class Value, unsigned groups>
template <class Visit>
bool Map<PersistencePolicy, Key, Value, groups>::each_live(std::uint64_t prefix,
                                                           DirectoryEntry entry,
                                                           Visit visit) const {
  const std::uint64_t word = prefix << (64 - entry.depth()) | top;
  const std::uint64_t top_bit = prefix << (64 - entry.depth()) & top;
  const MapSlot* slot = entry.template segment<MapSlot>();
  for (std::size_t i = 0; i < segment_slots; ++i) {
    const std::uint64_t found = load(slot[i].word);
    if (((found ^ word) & entry.mask()) != 0) continue;
    const std::uint64_t group_bit = i / slots & mark;
    if (!visit(slot[i], (found & ~top & ~mark) | top_bit | group_bit)) return false;
  }
  return true;
}

/// Whether the slot of an entry is valid. Claims its record; if `thorough`, compares it and
/// searches for a duplicate of the key.
template <class PersistencePolicy, class Key, class Value, unsigned groups>
bool Map<PersistencePolicy, Key, Value, groups>::sound(const MapSlot& slot, DirectoryEntry entry,
                                                       std::uint64_t hash, bool thorough) {
  const std::size_t line = place_of(entry, &slot) / slots;
  if (line / buckets != group_of(hash) || (line - hash) % buckets >= window) return false;
  if constexpr (!in_words)
    if (!records_.claim(slot.value)) return false;
  if (!thorough) return true;
  typename K::Out key;
  if (!read(slot.value, hash, &key, nullptr, [] { return true; })) return false;
  return hash_of(key) == hash && probe(entry, hash, key).found == &slot;
}

/// Marks the buckets with an entry in another bucket, and no others. Not flushed: repeated at open.
/// Visits only entries outside of their home one by one, because a split waits for this.
template <class PersistencePolicy, class Key, class Value, unsigned groups>
void Map<PersistencePolicy, Key, Value, groups>::mark_homes(std::uint64_t prefix,
                                                            DirectoryEntry entry) {
  static_assert(buckets * slots == 64, "a bit for each slot of a group");
  const std::uint64_t word = prefix << (64 - entry.depth()) | top;
  MapSlot* line = entry.template segment<MapSlot>();
  for (unsigned group = 0; group < groups; ++group, line += buckets * slots) {
    std::uint64_t strangers = 0; // bit i: slot i holds an entry of another bucket
    unsigned marks = 0;          // bit b: bucket b is marked
    for (unsigned b = 0; b < buckets; ++b) {
      const MapSlot* bucket = line + b * slots;
      const unsigned live = slots_with(bucket, word, entry.mask());
      const unsigned at_home = slots_with(bucket, b, buckets - 1);
      strangers |= std::uint64_t{live & ~at_home} << (b * slots);
      marks |= unsigned{marked(bucket)} << b;
    }
    unsigned away = 0; // bit b: an entry of bucket b lies in another one
    for (; strangers != 0; strangers &= strangers - 1)
      away |= 1u << (load(line[static_cast<unsigned>(std::countr_zero(strangers))].word) % buckets);
    for (unsigned wrong = marks ^ away; wrong != 0; wrong &= wrong - 1) {
      std::uint64_t& first = line[static_cast<unsigned>(std::countr_zero(wrong)) * slots].word;
      policy_.store(first, first ^ mark);
    }
  }
}

template <class PersistencePolicy, class Key, class Value, unsigned groups>
Status Map<PersistencePolicy, Key, Value, groups>::recover(bool thorough) {
  if (Status built = segments_.rebuild(directory_); !built) return built;
  std::int64_t live = 0;
  std::uint64_t wrong = 0; // link of a slot
  directory_.for_each([&](std::uint64_t prefix, DirectoryEntry entry) {
    if (!thorough) mark_homes(prefix, entry); // else the marks are part of what is checked
    return each_live(prefix, entry, [&](const MapSlot& slot, std::uint64_t hash) {
      ++live;
      if (sound(slot, entry, hash, thorough)) return true;
      wrong = policy_.link_of(&slot);
      return false;
    });
  });
  locks_[0].add_live(live);
  if (wrong == 0) return Done{};
  return Error::make(Errc::failed_check, "the slot at offset %llu of the pool is damaged: %s",
                     static_cast<unsigned long long>(wrong),
                     "its entry does not belong there, or links no record")
      .try_next("restore the pool from a copy");
}

/// After a clear: forgets all segments and records.
template <class PersistencePolicy, class Key, class Value, unsigned groups>
void Map<PersistencePolicy, Key, Value, groups>::forget() {
  directory_.clear();
  records_.reset();
  for (SeqLock& lock : locks_)
    lock.live.store(0, std::memory_order_relaxed);
}

} // namespace nearfar::structures
