// One set-associative cache: which lines it holds, which of them are dirty, which goes next.
//
// Purpose        the stone that hierarchies, TLBs, the layer condition and the replay are built of.
// Replacement    exact LRU (ages as bytes, compared sixteen at a time), or random among the ways.
// Write policy   write-back, write-allocate; a flush either evicts the line or keeps it clean.
// Set count      any, as caches with 11 ways of 28 MB have: the set is line mod sets.
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

namespace nearfar::cache {

enum class Policy : unsigned char { lru, random };

/// "lru" or "random".
Result<Policy> parse_policy(const char* name);

/// Size and shape. What does not fill a whole set is left out: 28 MB in 11 ways are 28 MB less a
/// few lines.
struct Geometry {
  std::uint64_t size_bytes = 0;
  unsigned ways = 0;
  unsigned line_bytes = 64;
  Policy policy = Policy::lru;
};

/// What a fill pushed out.
struct Victim {
  std::uint64_t line = 0;
  bool present = false; ///< false if the way was empty: the other fields mean nothing
  bool dirty = false;
};

/// What a flush found.
struct Flushed {
  bool present = false;
  bool dirty = false; ///< the line had to be written
};

class Cache {
public:
  static constexpr unsigned max_ways = 96;

  /// Refuses zero sizes, lines that are no power of two, more than max_ways ways.
  static Result<Cache> create(const Geometry& geometry, std::uint64_t seed = 1);

  /// Looks a line up; on a hit makes it the youngest, and dirty on a write. A miss changes nothing.
  bool touch(std::uint64_t line, bool write) {
    std::uint64_t* set = set_of(line);
    for (unsigned first = 0; first < tags_; first += 8)
      if (const unsigned found = match_eight(set + first, line)) {
        hit(set, first + static_cast<unsigned>(std::countr_zero(found)), write);
        return true;
      }
    return false;
  }

  /// Asks this machine for the part of the model that a later touch() of the line needs.
  void prefetch(std::uint64_t line) const {
    const std::uint64_t* set = set_of(line);
    for (std::size_t word = 0; word < stride_; word += 8)
      __builtin_prefetch(set + word, 1);
  }

  /// Puts a line in that is not there, as the youngest.
  Victim fill(std::uint64_t line, bool write);

  /// Makes a line dirty if it is there, without making it younger: a write-back from above.
  bool mark_dirty(std::uint64_t line);

  bool holds(std::uint64_t line) const;

  /// Cleans a line and, if `evict`, drops it; the order of the others stays.
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

  /// Which of eight tags are the line's, a bit each: without a branch, for it would be
  /// mispredicted.
  static unsigned match_eight(const std::uint64_t* tags, std::uint64_t line) {
    const __m128i wanted = _mm_set1_epi64x(static_cast<long long>(line));
    const auto* pairs = reinterpret_cast<const __m128i*>(tags);
    const __m128i low = _mm_packs_epi32(_mm_cmpeq_epi64(_mm_load_si128(pairs), wanted),
                                        _mm_cmpeq_epi64(_mm_load_si128(pairs + 1), wanted));
    const __m128i high = _mm_packs_epi32(_mm_cmpeq_epi64(_mm_load_si128(pairs + 2), wanted),
                                         _mm_cmpeq_epi64(_mm_load_si128(pairs + 3), wanted));
    const __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
    return static_cast<unsigned>(_mm_movemask_epi8(bytes));
  }

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

  unsigned find(const std::uint64_t* set, std::uint64_t line) const;
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
