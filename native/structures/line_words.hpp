// Compares the words of the four slots of a cache line at once.
//
// Layout         a slot has 16 bytes: a value, then its word.
// Purpose        while a line is fetched from memory, instructions that require it occupy the
//                core's scheduler: with fewer of them, more look-ups are in flight. Four
//                comparisons in vector registers take 17 instructions, in general ones 28 (GCC 12).
// Thread safety  other threads may store to the line: each word is read atomically, after earlier
//                loads of the caller and before later ones (x86 loads are ordered; assembly
//                prevents the compiler from moving them). ThreadSanitizer and bench/miss_counter do
//                not see assembly; for them, the words are read one by one.
#pragma once

#include <cstdint>
#include <smmintrin.h>

namespace nearfar::structures {

inline constexpr unsigned slots_per_line = 4;
inline constexpr unsigned all_slots = (1u << slots_per_line) - 1;

#ifdef __SANITIZE_THREAD__
inline unsigned slots_with(const void* line, std::uint64_t word, std::uint64_t mask) {
  const auto* words = static_cast<const std::uint64_t*>(line);
  unsigned found = 0;
  for (unsigned i = 0; i < slots_per_line; ++i) {
    const std::uint64_t stored = __atomic_load_n(words + 2 * i + 1, __ATOMIC_ACQUIRE);
    found |= unsigned{((stored ^ word) & mask) == 0} << i;
  }
  return found;
}
#else
inline __m128i load_slot(const __m128i* slot) {
  __m128i loaded;
  asm volatile("movdqa %1, %0" : "=x"(loaded) : "m"(*slot));
  return loaded;
}

/// Bit i is set if the word of slot i of the line equals `word` in all bits of `mask`.
inline unsigned slots_with(const void* line, std::uint64_t word, std::uint64_t mask) {
  const auto* slot = static_cast<const __m128i*>(line);
  const __m128i bits = _mm_set1_epi64x(static_cast<long long>(mask));
  const __m128i sought = _mm_set1_epi64x(static_cast<long long>(word & mask));
  const auto equal = [&](const __m128i* pair) {
    const __m128i words = _mm_unpackhi_epi64(load_slot(pair), load_slot(pair + 1));
    return _mm_castsi128_ps(_mm_cmpeq_epi64(_mm_and_si128(words, bits), sought));
  };
  const __m128 four = _mm_shuffle_ps(equal(slot), equal(slot + 2), _MM_SHUFFLE(2, 0, 2, 0));
  return static_cast<unsigned>(_mm_movemask_ps(four));
}
#endif

} // namespace nearfar::structures
