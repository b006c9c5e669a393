#include <cstring>

#include "bench/map_loops.hpp"
#include "bench/pool_place.hpp"
#include "structures/map.hpp"

namespace nearfar::bench {

namespace {

constexpr persist::Layout layout{"nearfar bench map", 2};

/// Memory for an entry with unused parts: 16 bytes in a slot, at worst half of them free, and a
/// chunk in advance, which is an eighth of all.
constexpr std::size_t bytes_an_entry = 64;
constexpr std::size_t overhead_bytes = 24 << 20;

std::size_t bytes_wanted(const MapPlan& plan) {
  const structures::RecordSizes sizes{0, plan.value_bytes}; // the key is in the entry
  const std::size_t record =
      plan.words() ? 0 : structures::VolatileSlabIndex::footprint(sizes.bytes()) * 5 / 4;
  return overhead_bytes + plan.operations * (bytes_an_entry + record);
}

/// Values of a word, kept in the entry.
struct Words {
  using Stored = std::uint64_t;
  using Read = std::uint64_t;
  explicit Words(std::size_t) {}
  std::uint64_t of(std::uint64_t key) const { return map_word(key); }
  template <class Map>
  std::uint64_t get(const Map& map, std::uint64_t key) const {
    std::uint64_t value = 0;
    return map.get(key, value) ? value : 0;
  }
  bool is_value(std::uint64_t value, std::uint64_t key) const { return value == map_word(key); }
};

/// Values of more bytes: the word over and over, all read back.
struct Strings {
  using Stored = structures::Bytes;
  using Read = std::string;
  std::size_t bytes;

  explicit Strings(std::size_t value_bytes) : bytes(value_bytes) {}
  std::string_view of(std::uint64_t key) const {
    thread_local std::string value;
    value.resize(bytes);
    const std::uint64_t word = map_word(key);
    for (std::size_t at = 0; at + sizeof word <= bytes; at += sizeof word)
      std::memcpy(value.data() + at, &word, sizeof word);
    return value;
  }
  template <class Map>
  std::uint64_t get(const Map& map, std::uint64_t key) const {
    thread_local std::string value;
    return map.get(key, value) ? word_in(value) : 0;
  }
  bool is_value(const std::string& value, std::uint64_t key) const {
    return word_in(value) == map_word(key);
  }

private:
  /// The word that is repeated in all of the value, or 0.
  std::uint64_t word_in(const std::string& value) const {
    if (value.size() != bytes) return 0;
    std::uint64_t first = 0;
    std::memcpy(&first, value.data(), sizeof first);
    for (std::size_t at = 0; at + sizeof first <= bytes; at += sizeof first)
      if (std::memcmp(value.data() + at, &first, sizeof first) != 0) return 0;
    return first;
  }
};

template <class Place, class Values>
class OurAdaptor {
public:
  using Map =
      structures::Map<typename Place::PersistencePolicy, std::uint64_t, typename Values::Stored>;

  OurAdaptor(Place place, std::size_t value_bytes)
      : place_(std::move(place)), values_(value_bytes) {}
  Status open() {
    Result<std::unique_ptr<Map>> map =
        Map::open(*place_.medium, *reinterpret_cast<structures::MapRoot*>(place_.root()));
    if (!map) return map.error();
    map_ = std::move(*map);
    return Done{};
  }

  bool insert(std::uint64_t key) { return first_.took(map_->insert(key, values_.of(key))); }
  bool remove(std::uint64_t key) { return first_.took(map_->remove(key)); }
  std::uint64_t get(std::uint64_t key) { return values_.get(*map_, key); }
  std::uint64_t get_many(std::span<const std::uint64_t> keys) {
    thread_local std::vector<typename Values::Read> values(map_batch);
    bool found[map_batch];
    map_->get_many(keys, std::span(values).first(keys.size()), std::span(found, keys.size()));
    std::uint64_t right = 0;
    for (std::size_t i = 0; i < keys.size(); ++i)
      right += found[i] && values_.is_value(values[i], keys[i]);
    return right;
  }
  const Error* failure() const { return first_.get(); }
  std::span<const std::byte> pool() const { return place_.memory(); }

private:
  Place place_;
  Values values_;
  std::unique_ptr<Map> map_;
  FirstFailure first_;
};

template <class Place, class Values>
Result<std::unique_ptr<MapSubject>> make(Place place, const MapPlan& plan) {
  using Adaptor = OurAdaptor<Place, Values>;
  auto adaptor = std::make_unique<Adaptor>(std::move(place), plan.value_bytes);
  if (Status opened = adaptor->open(); !opened) return opened.error();
  return std::unique_ptr<MapSubject>(std::make_unique<MapLoops<Adaptor>>(std::move(adaptor)));
}

template <class Place>
Result<std::unique_ptr<MapSubject>> make_for(Place place, const MapPlan& plan) {
  if (plan.words()) return make<Place, Words>(std::move(place), plan);
  return make<Place, Strings>(std::move(place), plan);
}

} // namespace

Result<std::unique_ptr<MapSubject>> our_map(const MapPlan& plan) {
  constexpr std::size_t root_bytes = sizeof(structures::MapRoot);
  if (plan.in_dram()) {
    Result<InDram> place = InDram::create(plan.tier, bytes_wanted(plan), root_bytes);
    if (!place) return place.error();
    return make_for(std::move(*place), plan);
  }
  auto place = InPool<structures::Pmem>::create(plan.tier, layout, bytes_wanted(plan), root_bytes);
  if (!place) return place.error();
  return make_for(std::move(*place), plan);
}

} // namespace nearfar::bench
