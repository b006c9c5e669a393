#include "cache/map_replay.hpp"

#include <numeric>
#include <utility>
#include <vector>

#include "cache/variants.hpp"

namespace nearfar::cache {

namespace {

constexpr std::uint64_t initial_buckets = 10;
constexpr std::uint64_t longest_chain = 10;
constexpr std::uint64_t longest_chain_when_full = 5; // at more than two entries a bucket
constexpr std::uint64_t hash_a = 1804289383; // what rand() yields first and second, never seeded
constexpr std::uint64_t hash_b = 846930886;
constexpr std::uint64_t hash_p = 32212254719;

constexpr std::uint64_t allocation_unit = 128;
constexpr std::uint64_t allocation_header = 16;
constexpr std::uint64_t heads_offset = 24; // the allocation's header, then the number of buckets
constexpr std::uint64_t head_bytes = 80;
constexpr std::uint64_t reference_bytes = 16; // pool and offset
constexpr std::uint64_t chunk_bytes = 256 << 10;
// Within an entry's allocation: key and value in the first line with `next`; `prev` ends in the
// second.
constexpr std::uint64_t entry_line = 0;
constexpr std::uint64_t prev_line = 64;

constexpr std::uint64_t entries_at = std::uint64_t{1} << 40;
constexpr std::uint64_t arrays_at = std::uint64_t{1} << 44;
constexpr std::uint64_t keys_at = std::uint64_t{1} << 45;
constexpr std::uint64_t order_at = std::uint64_t{3} << 44;
constexpr std::uint64_t results_at = std::uint64_t{1} << 46;

constexpr std::uint64_t max_operations = 100'000'000;
constexpr std::uint32_t none = ~std::uint32_t{0};

std::uint64_t draw_key(std::uint32_t& seed) {
  const std::uint64_t low = glibc_rand_r(seed);
  const std::uint64_t high = glibc_rand_r(seed);
  return high << 32 | low;
}

/// The map, its memory in a pool, and the caches.
class Replayer {
public:
  Replayer(const MapReplayPlan& plan, Caches caches)
      : plan_(plan), caches_(std::move(caches)),
        value_unit_((plan.value_bytes + allocation_header + allocation_unit - 1) / allocation_unit *
                    allocation_unit),
        entries_(plan.operations) {
    for (Entry& entry : entries_)
      entry.key = draw_key(seed_);
    new_array(initial_buckets);
  }

  /// The first insertions may be made without caches.
  void insert_all(std::uint64_t without_caches) {
    caches_.turn(false);
    for (std::uint32_t entry = 0; entry < plan_.operations; ++entry) {
      if (entry == without_caches) caches_.turn(true);
      if (entry + far_ahead < plan_.operations) look_ahead_far(entry + far_ahead);
      if (entry + near_ahead < plan_.operations) look_ahead_near(entry + near_ahead);
      insert(entry);
    }
    caches_.turn(true);
  }

  /// The benchmark's choice of keys without repetition; it reads and writes its two arrays.
  void shuffle() {
    const std::uint64_t count = plan_.operations;
    order_.resize(count);
    for (std::uint64_t i = 0; i < count; ++i)
      order_[i] = static_cast<std::uint32_t>(draw_key(seed_) % (count - i));
    std::vector<std::uint32_t> left(count);
    std::iota(left.begin(), left.end(), 0u);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i + near_ahead < count) __builtin_prefetch(&left[order_[i + near_ahead]], 1);
      const std::uint32_t chosen = order_[i];
      const std::uint64_t last = count - 1 - i;
      order_[i] = left[chosen];
      std::swap(left[chosen], left[last]);
      caches_.access(keys_at + chosen * 8ull, true);
      caches_.stream(order_at, i, 8, true);
      caches_.stream(keys_at, last, 8, true);
    }
  }

  void visit_all(MapOperation operation) {
    const std::uint64_t count = plan_.operations;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i + 2 * far_ahead < count) __builtin_prefetch(&entries_[order_[i + 2 * far_ahead]]);
      if (i + far_ahead < count) look_ahead_far(order_[i + far_ahead]);
      if (i + near_ahead < count) look_ahead_near(order_[i + near_ahead]);
      caches_.stream(order_at, i, 8, false);
      if (operation == MapOperation::get)
        find(entries_[order_[i]].key);
      else
        remove(order_[i]);
      caches_.stream(results_at, i, plan_.result_bytes, true);
    }
  }

  void forget_counts() {
    counts_ = {};
    caches_.forget_misses();
  }

  MapReplay counts() {
    MapReplay out = counts_;
    out.operations = plan_.operations;
    out.buckets = heads_.size();
    out.missed = caches_.missed();
    return out;
  }

private:
  struct Entry {
    std::uint64_t key;
    std::uint32_t next;
    std::uint32_t prev;
  };

  std::uint64_t bucket_of(std::uint64_t key) const {
    return (hash_a * key + hash_b) % hash_p % heads_.size();
  }
  std::uint64_t value_address(std::uint64_t entry) const {
    return entries_at + entry * (value_unit_ + allocation_unit);
  }
  std::uint64_t entry_address(std::uint64_t entry) const {
    return value_address(entry) + value_unit_;
  }
  static std::uint64_t head_address(std::uint64_t array, std::uint64_t bucket) {
    return array + heads_offset + bucket * head_bytes;
  }

  // Only for speed: prefetch distance, in operations, for the memory of this machine.
  static constexpr std::uint32_t far_ahead = 16;
  static constexpr std::uint32_t near_ahead = 8;

  void look_ahead_far(std::uint32_t entry) const {
    __builtin_prefetch(&heads_[bucket_of(entries_[entry].key)]);
  }
  void look_ahead_near(std::uint32_t entry) const {
    const std::uint32_t first = heads_[bucket_of(entries_[entry].key)];
    if (first != none) __builtin_prefetch(&entries_[first]);
  }

  void persist(std::uint64_t first, std::uint64_t last) {
    counts_.flushed_lines += caches_.persist(first, last);
    ++counts_.fences;
  }
  void persist_head(std::uint64_t array, std::uint64_t bucket) {
    const std::uint64_t head = head_address(array, bucket);
    persist(head, head + reference_bytes - 1);
  }
  void persist_part(std::uint32_t entry, std::uint64_t offset) {
    persist(entry_address(entry) + offset, entry_address(entry) + offset);
  }

  /// The map's header: its count is marked invalid, changed, and marked valid again.
  void persist_count() {
    counts_.flushed_lines += 3;
    counts_.fences += 3;
  }

  /// Walks a chain to a key, or to its end; returns the number of entries visited.
  std::uint64_t find(std::uint64_t key) {
    const std::uint64_t bucket = bucket_of(key);
    const std::uint64_t head = head_address(array_, bucket);
    caches_.visit(head, head + reference_bytes - 1);
    ++counts_.heads;
    std::uint64_t seen = 0;
    const std::uint32_t first = heads_[bucket];
    for (std::uint32_t entry = first; entry != none;) {
      caches_.visit(entry_address(entry), entry_address(entry));
      ++seen;
      const Entry& here = entries_[entry];
      if (here.key == key) break;
      entry = here.next == first ? none : here.next;
    }
    counts_.walked += seen;
    return seen;
  }

  /// Links an entry in as the first of a circular list, its neighbors rewritten and flushed.
  void link(std::uint32_t entry, std::uint64_t bucket) {
    Entry& linked = entries_[entry];
    const std::uint32_t first = heads_[bucket];
    if (first == none) {
      linked.next = linked.prev = entry;
    } else {
      const std::uint32_t last = entries_[first].prev;
      linked.next = first;
      linked.prev = last;
      entries_[first].prev = entries_[last].next = entry;
      persist_part(first, prev_line);
      persist_part(last, entry_line);
    }
    heads_[bucket] = entry;
    persist_head(array_, bucket);
  }

  /// Removes an entry from a bucket of `heads`, the array at `array`.
  void unlink(std::uint32_t entry, std::vector<std::uint32_t>& heads, std::uint64_t array,
              std::uint64_t bucket) {
    const auto [key, after, before] = entries_[entry];
    if (after != entry) {
      entries_[before].next = after;
      entries_[after].prev = before;
      persist_part(before, entry_line);
      persist_part(after, prev_line);
    }
    if (heads[bucket] != entry) return;
    heads[bucket] = after == entry ? none : after;
    persist_head(array, bucket);
  }

  void insert(std::uint32_t entry) {
    const std::uint64_t key = entries_[entry].key;
    find(key); // the benchmark asks first whether the key is new
    const std::uint64_t value = value_address(entry);
    caches_.access(value, true);
    const std::uint64_t chain = find(key) + 1;
    persist(entry_address(entry) + allocation_header, entry_address(entry) + prev_line);
    link(entry, bucket_of(key));
    persist(value, value + allocation_header + plan_.value_bytes - 1);
    persist_count();
    ++count_;
    if (chain > longest_chain || (chain > longest_chain_when_full && count_ > 2 * heads_.size()))
      rebuild(2 * heads_.size());
  }

  void remove(std::uint32_t entry) {
    const std::uint64_t key = entries_[entry].key;
    find(key);
    unlink(entry, heads_, array_, bucket_of(key));
    persist_count();
    if (--count_ < heads_.size() && heads_.size() > 1) rebuild(heads_.size() / 2);
  }

  /// Zeroes are written by non-temporal stores: a new array is not in the cache.
  void new_array(std::uint64_t buckets) {
    heads_.assign(buckets, none);
    array_ = next_array_;
    const std::uint64_t bytes = heads_offset + buckets * head_bytes;
    next_array_ += (bytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
  }

  void rebuild(std::uint64_t buckets) {
    std::vector<std::uint32_t> old = std::move(heads_);
    const std::uint64_t old_array = array_;
    new_array(buckets);
    for (std::uint64_t bucket = 0; bucket < old.size(); ++bucket) {
      if (bucket + far_ahead < old.size() && old[bucket + far_ahead] != none)
        __builtin_prefetch(&entries_[old[bucket + far_ahead]]);
      if (bucket + near_ahead < old.size() && old[bucket + near_ahead] != none)
        look_ahead_far(old[bucket + near_ahead]);
      caches_.access(head_address(old_array, bucket), false);
      while (old[bucket] != none) {
        const std::uint32_t entry = old[bucket];
        caches_.access(entry_address(entry), false);
        unlink(entry, old, old_array, bucket);
        link(entry, bucket_of(entries_[entry].key));
        persist(entry_address(entry), entry_address(entry) + prev_line);
        ++counts_.moved;
      }
    }
  }

  MapReplayPlan plan_;
  Caches caches_;
  std::uint64_t value_unit_; ///< bytes of a value's allocation
  std::uint32_t seed_ = 1;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> heads_;
  std::vector<std::uint32_t> order_;
  std::uint64_t array_ = 0;
  std::uint64_t next_array_ = arrays_at;
  std::uint64_t count_ = 0;
  MapReplay counts_;
};

Status check(const MapReplayPlan& plan) {
  if (plan.operations == 0 || plan.operations > max_operations)
    return Error::make(Errc::bad_input, "%llu operations cannot be replayed",
                       static_cast<unsigned long long>(plan.operations))
        .try_next("give 1 to 10^8: more would take more than 4 GB");
  if (plan.value_bytes == 0 || plan.value_bytes > std::uint64_t{1} << 20)
    return Error::make(Errc::bad_input, "values of %llu bytes cannot be replayed",
                       static_cast<unsigned long long>(plan.value_bytes))
        .try_next("give 1 byte to 1 MiB");
  if (plan.variants.empty())
    return Error::make(Errc::bad_input, "no variant to replay").try_next("name one");
  return Done{};
}

} // namespace

std::uint32_t glibc_rand_r(std::uint32_t& seed) {
  const auto step = [&seed] {
    seed = seed * 1103515245u + 12345u;
    return seed >> 16;
  };
  std::uint32_t out = step() & 2047;
  out = out << 10 ^ (step() & 1023);
  return out << 10 ^ (step() & 1023);
}

Result<MapReplay> replay_map(const MapReplayPlan& plan, MapOperation operation) {
  Status checked = check(plan);
  if (!checked) return checked.error();
  std::vector<Variant> variants;
  for (const MapVariant& wanted : plan.variants) {
    Geometry geometry = plan.geometry;
    geometry.policy = wanted.policy;
    Result<Cache> cache = Cache::create(geometry, plan.seed + variants.size());
    if (!cache) return cache.error();
    variants.emplace_back(std::move(*cache), wanted.flush_evicts);
  }
  Replayer replayer(plan, Caches(std::move(variants), plan.geometry.line_bytes));
  if (operation == MapOperation::insert) {
    replayer.insert_all(0);
    return replayer.counts();
  }
  // Lines of the shuffle, and one for each insertion, evict the earlier contents.
  const std::uint64_t shuffled = 2 * 8 * plan.operations;
  const std::uint64_t twice = 2 * plan.geometry.size_bytes;
  const std::uint64_t wanted = twice > shuffled ? (twice - shuffled) / plan.geometry.line_bytes : 0;
  replayer.insert_all(plan.operations > wanted ? plan.operations - wanted : 0);
  replayer.shuffle();
  replayer.forget_counts();
  replayer.visit_all(operation);
  return replayer.counts();
}

} // namespace nearfar::cache
