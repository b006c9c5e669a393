// The longer members of Map; included by map.hpp alone.
#pragma once

#include "structures/map.hpp"

namespace nearfar::structures {

template <class Medium, class Key, class Value, unsigned groups>
bool Map<Medium, Key, Value, groups>::look(typename K::In key, typename V::Out* value) const {
  const std::uint64_t hash = hash_of(key);
  for (;;) {
    const Entry entry = directory_.find(hash);
    if (!entry) return false;
    const SeqLock& lock = lock_of(entry, hash);
    const std::uint32_t version = lock.begin();
    const auto still = [&] { return lock.still(version); };
    Slot* slot = nullptr;
    for (unsigned i = 0; i < window && slot == nullptr; ++i)
      slot = find_in(bucket(entry, hash, i), hash | top, key, still);
    if (slot != nullptr && value != nullptr) read(load(slot->value), hash, nullptr, value, still);
    // A split sets the directory under the lock: an entry that stood until now stood all the time.
    if (directory_.find(hash) == entry && lock.still(version)) return slot != nullptr;
  }
}

template <class Medium, class Key, class Value, unsigned groups>
Result<std::uint64_t> Map<Medium, Key, Value, groups>::value_word(typename K::In key,
                                                                  typename V::In value) {
  if constexpr (in_words)
    return V::word(value);
  else
    return records_.write(key_in_word ? std::string_view() : K::bytes(key), V::bytes(value));
}

template <class Medium, class Key, class Value, unsigned groups>
Result<bool> Map<Medium, Key, Value, groups>::store(typename K::In key, typename V::In value,
                                                    bool replace) {
  const std::uint64_t hash = hash_of(key);
  for (;;) {
    const Entry entry = directory_.find(hash);
    if (!entry) {
      if (Status made = plant(hash); !made) return made.error();
      continue;
    }
    prefetch(entry, hash);
    {
      const std::lock_guard guard(lock_of(entry, hash));
      if (directory_.find(hash) != entry) continue;
      const Probe at = probe(entry, hash, key);
      if (at.found != nullptr && !replace) return false;
      if (Slot* slot = at.found != nullptr ? at.found : at.free; slot != nullptr) {
        Result<std::uint64_t> word = value_word(key, value);
        if (!word) return word.error();
        if constexpr (!in_words) medium_.fence();
        const std::uint64_t before = slot->value;
        medium_.store(slot->value, *word);
        if (at.found == nullptr) medium_.store(slot->word, hash | top);
        medium_.flush(slot, sizeof *slot);
        medium_.fence();
        if (at.found == nullptr)
          lock_of(entry, hash).add_live(1);
        else if constexpr (!in_words)
          records_.free(before);
        return settled(at.found == nullptr);
      }
    }
    if (Status made = split(hash); !made) return made.error();
  }
}

template <class Medium, class Key, class Value, unsigned groups>
Result<std::uint64_t> Map<Medium, Key, Value, groups>::publish(typename K::In key,
                                                               std::uint64_t value) {
  const std::uint64_t hash = hash_of(key);
  for (;;) {
    const Entry entry = directory_.find(hash);
    if (entry) {
      const Probe at = probe(entry, hash, key);
      if (Slot* slot = at.found != nullptr ? at.found : at.free; slot != nullptr) {
        const std::uint64_t before = at.found != nullptr ? slot->value : 0;
        medium_.store(slot->value, value);
        if (at.found == nullptr) medium_.store(slot->word, hash | top);
        medium_.flush(slot, sizeof *slot);
        if (at.found == nullptr) lock_of(entry, hash).add_live(1);
        return before;
      }
    }
    if (Status made = entry ? split(hash) : plant(hash); !made) return made.error();
  }
}

/// Links a batch of value words to its keys: one fence before, if they are records, and one after.
template <class Medium, class Key, class Value, unsigned groups>
Status Map<Medium, Key, Value, groups>::publish_all(const std::vector<std::uint64_t>& words,
                                                    auto from) {
  if constexpr (!in_words) medium_.fence();
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
  medium_.fence();
  if constexpr (!in_words)
    for (const std::uint64_t link : unlinked)
      if (link != 0) records_.free(link);
  if (failed) return *failed;
  return Done{};
}

template <class Medium, class Key, class Value, unsigned groups>
template <class Pairs>
Status Map<Medium, Key, Value, groups>::bulk_load(const Pairs& pairs) {
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
  if (medium_.failed()) return sync_failed();
  return Done{};
}

template <class Medium, class Key, class Value, unsigned groups>
Status Map<Medium, Key, Value, groups>::plant(std::uint64_t hash) {
  const std::lock_guard guard(planting_);
  if (directory_.find(hash)) return Done{};
  if (Status room = directory_.reserve(1); !room) return room;
  Result<Taken> taken = segments_.take();
  if (!taken) return taken.error();
  std::memset(taken->segment, 0, segment_bytes);
  medium_.stored(taken->segment, segment_bytes);
  medium_.flush(taken->segment, segment_bytes);
  medium_.fence();
  segments_.bear(*taken, 1, hash >> 63);
  directory_.set(hash >> 63, Entry(taken->segment, 1));
  return Done{};
}

template <class Medium, class Key, class Value, unsigned groups>
Status Map<Medium, Key, Value, groups>::split(std::uint64_t hash) {
  const Entry entry = directory_.find(hash);
  struct Row { // writers of the segment wait, its readers try again
    SeqLock* first;
    explicit Row(SeqLock* locks) : first(locks) {
      for (unsigned i = 0; i < groups; ++i)
        first[i].lock();
    }
    ~Row() {
      for (unsigned i = 0; i < groups; ++i)
        first[i].unlock();
    }
  } const row(&locks_[row_of(entry)]);
  if (directory_.find(hash) != entry) return Done{}; // somebody else has split it
  const unsigned depth = entry.depth() + 1;
  if (depth > Entry::max_depth)
    return Error::make(Errc::no_space, "a map has at most 2^%u segments", Entry::max_depth)
        .try_next("split its entries over several maps");
  if (Status room = directory_.reserve(depth); !room) return room;
  Result<Taken> taken = segments_.take();
  if (!taken) return taken.error();
  const std::uint64_t prefix = hash >> (64 - depth) | 1;
  move_upper(entry, reinterpret_cast<Slot*>(taken->segment), prefix << (64 - depth) | top, depth);
  medium_.stored(taken->segment, segment_bytes);
  medium_.flush(taken->segment, segment_bytes);
  medium_.fence();
  segments_.bear(*taken, depth, prefix);
  directory_.set(prefix - 1, Entry(entry.template segment<void>(), depth));
  directory_.set(prefix, Entry(taken->segment, depth));
  return Done{};
}

/// Copies the entries whose word has the top `depth` bits of `word` to the same places of a new
/// segment, and makes the rest of it free. Left behind, they are free there once the depth is set.
template <class Medium, class Key, class Value, unsigned groups>
void Map<Medium, Key, Value, groups>::move_upper(Entry from, Slot* to, std::uint64_t word,
                                                 unsigned depth) {
  const Slot* slot = from.template segment<Slot>();
  const std::uint64_t mask = ~std::uint64_t{0} << (64 - depth);
  for (std::size_t i = 0; i < segment_slots; ++i) {
    const bool moves = ((slot[i].word ^ word) & mask) == 0;
    to[i].value = moves ? slot[i].value : 0;
    to[i].word = moves ? slot[i].word : 0;
  }
}

/// Calls visit(slot, hash) for each entry of a segment until it returns false.
template <class Medium, class Key, class Value, unsigned groups>
template <class Visit>
bool Map<Medium, Key, Value, groups>::each_live(std::uint64_t prefix, Entry entry,
                                                Visit visit) const {
  const std::uint64_t word = prefix << (64 - entry.depth()) | top;
  const std::uint64_t implied = prefix << (64 - entry.depth()) & top;
  const Slot* slot = entry.template segment<Slot>();
  for (std::size_t i = 0; i < segment_slots; ++i) {
    const std::uint64_t found = load(slot[i].word);
    if (((found ^ word) & entry.mask()) != 0) continue;
    if (!visit(slot[i], (found & ~top) | implied)) return false;
  }
  return true;
}

/// Whether an entry may lie where it does. Takes its record; compares it and looks for the key's
/// double if `thorough`.
template <class Medium, class Key, class Value, unsigned groups>
bool Map<Medium, Key, Value, groups>::sound(const Slot& slot, Entry entry, std::uint64_t hash,
                                            bool thorough) {
  const auto place = static_cast<std::size_t>(&slot - entry.template segment<Slot>());
  const std::size_t line = place / slots;
  if (line / buckets != group_of(hash) || (line - hash) % buckets >= window) return false;
  if constexpr (!in_words)
    if (!records_.claim(slot.value)) return false;
  if (!thorough) return true;
  typename K::Out key;
  if (!read(slot.value, hash, &key, nullptr, [] { return true; })) return false;
  return hash_of(key) == hash && probe(entry, hash, key).found == &slot;
}

template <class Medium, class Key, class Value, unsigned groups>
Status Map<Medium, Key, Value, groups>::recover(bool thorough) {
  if (Status built = segments_.rebuild(directory_); !built) return built;
  std::int64_t live = 0;
  std::uint64_t wrong = 0; // link of a slot
  directory_.for_each([&](std::uint64_t prefix, Entry entry) {
    return each_live(prefix, entry, [&](const Slot& slot, std::uint64_t hash) {
      ++live;
      if (sound(slot, entry, hash, thorough)) return true;
      wrong = medium_.link_of(&slot);
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

/// After a clear: nothing is known of any segment or record.
template <class Medium, class Key, class Value, unsigned groups>
void Map<Medium, Key, Value, groups>::forget() {
  directory_.clear();
  records_.reset();
  for (SeqLock& lock : locks_)
    lock.live.store(0, std::memory_order_relaxed);
}

} // namespace nearfar::structures
