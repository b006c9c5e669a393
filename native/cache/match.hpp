// Finds a number among several ones without a branch, which would often be mispredicted.
//
// Thread safety  pure functions.
#pragma once

#include <cstdint>
#include <smmintrin.h>

namespace nearfar::cache {

/// Eight numbers, aligned to 16 bytes: all bits of 16 where one is equal.
inline __m128i equal_among_eight(const std::uint64_t* numbers, std::uint64_t wanted) {
  const __m128i all = _mm_set1_epi64x(static_cast<long long>(wanted));
  const auto* pairs = reinterpret_cast<const __m128i*>(numbers);
  return _mm_packs_epi32(_mm_packs_epi32(_mm_cmpeq_epi64(_mm_load_si128(pairs), all),
                                         _mm_cmpeq_epi64(_mm_load_si128(pairs + 1), all)),
                         _mm_packs_epi32(_mm_cmpeq_epi64(_mm_load_si128(pairs + 2), all),
                                         _mm_cmpeq_epi64(_mm_load_si128(pairs + 3), all)));
}

/// A bit for each of eight numbers.
inline unsigned match_eight(const std::uint64_t* numbers, std::uint64_t wanted) {
  const __m128i equal = equal_among_eight(numbers, wanted);
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())));
}

/// A bit for each of sixteen.
inline unsigned match_sixteen(const std::uint64_t* numbers, std::uint64_t wanted) {
  return static_cast<unsigned>(_mm_movemask_epi8(
      _mm_packs_epi16(equal_among_eight(numbers, wanted), equal_among_eight(numbers + 8, wanted))));
}

} // namespace nearfar::cache
