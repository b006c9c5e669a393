// A set-associative cache: its lines, which of them are dirty, and the replacement order.
//
// Purpose        part of hierarchies, TLBs, the layer condition and the replay.
// Replacement    exact LRU (ages as bytes, compared sixteen at a time), or random among the ways.
// Write policy   write-back, write-allocate; a flush either evicts the line or keeps it clean.
// Set count      any, because caches of 28 MB with 11 ways exist: the set is line mod sets.
// Thread safety  none; one cache a thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <emmintrin.h>
#include <memory>
#include <smmintrin.h>
#include <tmmintrin.h>

#include "base/random.hpp"
#include "base/result.hpp"
#include "cache/match.hpp"

namespace nearfar::cache {

enum class Policy : unsigned char { lru, random };

/// "lru" or "random".
Result<Policy> parse_policy(const char* name);

/// Size and shape. The size is rounded down to whole sets.
struct Geometry {
  std::uint64_t size_bytes = 0;
  unsigned ways = 0;
  unsigned line_bytes = 64;
  Policy policy = Policy::lru;
};

/// The line that a fill evicted.
struct Victim {
  std::uint64_t line = 0;
  bool present = false; ///< false if the way was empty; the other fields are then undefined
  bool dirty = false;
};

/// The state of a line before its flush.
struct Flushed {
  bool present = false;
  bool dirty = false; ///< whether the line was written back
};

class Cache {
public:
  static constexpr unsigned max_ways = 96;

  /// Errors: bad_input (a size of zero, a line size that is not a power of two, more than
  /// max_ways).
  static Result<Cache> create(const Geometry& geometry, std::uint64_t seed = 1);

  /// Returns whether the line is present. A hit makes it the most recently used one, and a write
  /// makes it dirty. A miss has no effect.
  bool touch(std::uint64_t line, bool write) {
    std::uint64_t* set = set_of(line);
    const unsigned way = find(set, line);
    if (way == nowhere) return false;
    hit(set, way, write);
    return true;
  }

  /// Prefetches the data that a later touch() of the line needs into the caches of this machine.
  void prefetch(std::uint64_t line) const {
    const std::uint64_t* set = set_of(line);
    for (std::size_t word = 0; word < stride_;
         word += 8)                                     // the built-in function has no effect that
      asm volatile("prefetcht0 %0" : : "m"(set[word])); // compilers would keep in all callers
  }

  /// Inserts an absent line as the most recently used one.
  Victim fill(std::uint64_t line, bool write);

  /// The line that fill() would evict now, with the policy `lru`.
  Victim victim_for(std::uint64_t line) const {
    std::uint64_t* set = set_of(line);
    return victim_at(set, oldest(set));
  }

  /// Makes a line dirty if it is present, without an effect on the order: a write-back from above.
  bool mark_dirty(std::uint64_t line);

  bool holds(std::uint64_t line) const;

  /// Writes a line back and, if `evict`, removes it. The order of the other lines does not change.
  Flushed flush(std::uint64_t line, bool evict);

  std::uint64_t sets() const { return sets_; }
  const Geometry& geometry() const { return geometry_; }

private:
  // A set is `stride_` words: tags (whole line numbers, padded to eight), ages (bytes, 0 the
  // youngest, padded to sixteen), dirty bits.
  static constexpr std::uint64_t empty = ~std::uint64_t{0};
  static constexpr unsigned dirty_words = 2;

  struct FreeAligned {
    void operator()(std::uint64_t* words) const { std::free(words); }
  };

  Cache(const Geometry& geometry, std::uint64_t sets, std::uint64_t seed);
  Status allocate();

  std::uint64_t* set_of(std::uint64_t line) const {
    std::uint64_t set;
    if (!inverse_) {
      set = line & (sets_ - 1);
    } else { // the quotient by multiplying with 2^64 / sets is right or one too small
      __extension__ using Wide = unsigned __int128;
      const auto quotient = static_cast<std::uint64_t>((static_cast<Wide>(line) * inverse_) >> 64);
      set = line - quotient * sets_;
      if (set >= sets_) set -= sets_;
    }
    return words_.get() + set * stride_;
  }

  unsigned char* ages(std::uint64_t* set) const {
    return reinterpret_cast<unsigned char*>(set + tags_);
  }
  std::uint64_t* dirty(std::uint64_t* set) const { return set + stride_ - dirty_words; }

  void hit(std::uint64_t* set, unsigned way, bool write) {
    if (geometry_.policy == Policy::lru) rejuvenate(ages(set), way);
    dirty(set)[way >> 6] |= static_cast<std::uint64_t>(write) << (way & 63);
  }

  /// Age of `way` becomes 0; those that were younger grow by one.
  void rejuvenate(unsigned char* bytes, unsigned way) const {
    auto* blocks = reinterpret_cast<__m128i*>(bytes);
    if (age_blocks_ == 1) { // the age comes out of the register: a byte load would have to wait
      const __m128i old = _mm_load_si128(blocks);
      const __m128i own = _mm_shuffle_epi8(old, _mm_set1_epi8(static_cast<char>(way)));
      _mm_store_si128(blocks, aged(old, own));
      return;
    }
    const __m128i own = _mm_set1_epi8(static_cast<char>(bytes[way]));
    for (unsigned block = 0; block < age_blocks_; ++block)
      _mm_store_si128(blocks + block, aged(_mm_load_si128(blocks + block), own));
  }

  /// Ages are all different: the one equal to `own` is the line's that was used.
  static __m128i aged(__m128i old, __m128i own) {
    const __m128i grown = _mm_sub_epi8(old, _mm_cmplt_epi8(old, own));
    return _mm_andnot_si128(_mm_cmpeq_epi8(old, own), grown);
  }

  static constexpr unsigned nowhere = max_ways;

  /// The way that holds the line, or `nowhere`. `empty` may be found in what pads the set.
  unsigned find(const std::uint64_t* set, std::uint64_t line) const {
    if (tags_ == 16) { // most are: no branch between the halves
      const unsigned found = match_sixteen(set, line);
      return found != 0 ? static_cast<unsigned>(std::countr_zero(found)) : nowhere;
    }
    for (unsigned first = 0; first < tags_; first += 8)
      if (const unsigned found = match_eight(set + first, line))
        return first + static_cast<unsigned>(std::countr_zero(found));
    return nowhere;
  }
  unsigned oldest(std::uint64_t* set) const {
    const auto age = static_cast<char>(geometry_.ways - 1);
    const auto* blocks = reinterpret_cast<const __m128i*>(ages(set));
    for (unsigned block = 0;; ++block) { // one way has that age
      const __m128i equal = _mm_cmpeq_epi8(_mm_load_si128(blocks + block), _mm_set1_epi8(age));
      if (const int found = _mm_movemask_epi8(equal))
        return 16 * block + static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(found)));
    }
  }
  Victim victim_at(std::uint64_t* set, unsigned way) const {
    return {set[way], set[way] != empty, (dirty(set)[way >> 6] >> (way & 63) & 1) != 0};
  }
  unsigned choose_victim(std::uint64_t* set);

  Geometry geometry_;
  std::uint64_t sets_;
  std::uint64_t inverse_; ///< floor(2^64 / sets), or 0 where sets is a power of two
  unsigned tags_;         ///< ways, padded
  unsigned age_blocks_;
  std::size_t stride_;
  Random random_;
  std::unique_ptr<std::uint64_t[], FreeAligned> words_;
};

} // namespace nearfar::cache
