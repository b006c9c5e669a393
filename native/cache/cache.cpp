#include "cache/cache.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>

namespace nearfar::cache {

namespace {

constexpr std::size_t max_model_bytes = std::size_t{8} << 30; // some 50 GiB of cache in 16 ways
constexpr unsigned char never_oldest = 0x7f; // of the bytes that pad ages to sixteen

} // namespace

Result<Policy> parse_policy(const char* name) {
  if (std::strcmp(name, "lru") == 0) return Policy::lru;
  if (std::strcmp(name, "random") == 0) return Policy::random;
  return Error::make(Errc::bad_input, "unknown replacement policy '%s'", name)
      .try_next("write lru or random");
}

Cache::Cache(const Geometry& geometry, std::uint64_t sets, std::uint64_t seed)
    : geometry_(geometry), sets_(sets),
      inverse_(std::has_single_bit(sets) ? 0 : ~std::uint64_t{0} / sets),
      tags_((geometry.ways + 7) / 8 * 8), age_blocks_((geometry.ways + 15) / 16),
      stride_(tags_ + 2 * age_blocks_ + dirty_words), random_(seed) {}

Result<Cache> Cache::create(const Geometry& geometry, std::uint64_t seed) {
  if (!std::has_single_bit(geometry.line_bytes))
    return Error::make(Errc::bad_input, "invalid line of %u bytes: must be a power of two",
                       geometry.line_bytes)
        .try_next("name the line size that the processor states, mostly 64");
  if (geometry.ways == 0 || geometry.ways > max_ways)
    return Error::make(Errc::bad_input, "a cache of %u ways is not modeled", geometry.ways)
        .try_next("give 1 to %u ways", max_ways);
  const std::uint64_t set_bytes = std::uint64_t{geometry.line_bytes} * geometry.ways;
  const std::uint64_t sets = geometry.size_bytes / set_bytes;
  if (sets == 0)
    return Error::make(Errc::bad_input, "%llu bytes are less than one set of %u ways",
                       static_cast<unsigned long long>(geometry.size_bytes), geometry.ways)
        .try_next("give at least %llu bytes", static_cast<unsigned long long>(set_bytes));
  Cache cache(geometry, sets, seed);
  Status allocated = cache.allocate();
  if (!allocated) return allocated.error();
  return cache;
}

Status Cache::allocate() {
  const std::size_t set_bytes = stride_ * sizeof(std::uint64_t);
  const std::size_t alignment = 64;
  void* words = nullptr;
  if (sets_ <= max_model_bytes / set_bytes)
    words =
        std::aligned_alloc(alignment, (sets_ * set_bytes + alignment - 1) / alignment * alignment);
  if (!words)
    return Error::make(Errc::no_space, "no memory for the model of a cache of %llu bytes",
                       static_cast<unsigned long long>(geometry_.size_bytes))
        .try_next("model a smaller cache");
  words_.reset(static_cast<std::uint64_t*>(words));
  for (std::uint64_t* set = words_.get(); set != words_.get() + sets_ * stride_; set += stride_) {
    for (unsigned way = 0; way < tags_; ++way)
      set[way] = empty;
    for (unsigned way = 0; way < 16 * age_blocks_; ++way)
      ages(set)[way] = way < geometry_.ways ? static_cast<unsigned char>(way) : never_oldest;
    dirty(set)[0] = dirty(set)[1] = 0;
  }
  return Done{};
}

unsigned Cache::choose_victim(std::uint64_t* set) {
  if (geometry_.policy == Policy::random) {
    const unsigned vacant = find(set, empty);
    return vacant < geometry_.ways ? vacant : static_cast<unsigned>(random_.below(geometry_.ways));
  }
  return oldest(set);
}

Victim Cache::fill(std::uint64_t line, bool write) {
  std::uint64_t* set = set_of(line);
  const unsigned way = choose_victim(set);
  std::uint64_t& dirty_bits = dirty(set)[way >> 6];
  const std::uint64_t bit = std::uint64_t{1} << (way & 63);
  const Victim victim = victim_at(set, way);
  set[way] = line;
  dirty_bits &= ~bit;
  hit(set, way, write);
  return victim;
}

bool Cache::mark_dirty(std::uint64_t line) {
  std::uint64_t* set = set_of(line);
  const unsigned way = find(set, line);
  if (way == nowhere) return false;
  dirty(set)[way >> 6] |= std::uint64_t{1} << (way & 63);
  return true;
}

bool Cache::holds(std::uint64_t line) const { return find(set_of(line), line) != nowhere; }

Flushed Cache::flush(std::uint64_t line, bool evict) {
  std::uint64_t* set = set_of(line);
  const unsigned way = find(set, line);
  if (way == nowhere) return {};
  std::uint64_t& dirty_bits = dirty(set)[way >> 6];
  const std::uint64_t bit = std::uint64_t{1} << (way & 63);
  const Flushed found{true, (dirty_bits & bit) != 0};
  dirty_bits &= ~bit;
  if (!evict) return found;
  set[way] = empty;
  unsigned char* bytes = ages(set); // the vacated way is the oldest: it is the next to be filled
  for (unsigned other = 0; other < geometry_.ways; ++other)
    if (bytes[other] > bytes[way]) --bytes[other];
  bytes[way] = static_cast<unsigned char>(geometry_.ways - 1);
  return found;
}

} // namespace nearfar::cache
