#include "kernels/persist.hpp"

#include <cstring>

#include "base/random.hpp"
#include "os/cpu.hpp"

namespace nearfar::kernels {

namespace {

template <os::Persist how>
void persist_line(std::byte* line, std::uint64_t stamp) {
  const __m128i value = _mm_set1_epi64x(static_cast<long long>(stamp));
  auto* target = reinterpret_cast<__m128i*>(line);
  if constexpr (how == os::Persist::movdir64b) {
    alignas(64) __m128i source[4] = {value, value, value, value};
    os::move_direct_64(line, source);
  } else if constexpr (how == os::Persist::ntstore) {
    for (int i = 0; i < 4; ++i)
      _mm_stream_si128(target + i, value);
  } else {
    for (int i = 0; i < 4; ++i)
      _mm_store_si128(target + i, value);
    asm volatile("" : : "r"(target) : "memory");
    if constexpr (how == os::Persist::clwb) os::write_back_clwb(line);
    if constexpr (how == os::Persist::clflushopt) os::flush_clflushopt(line);
    if constexpr (how == os::Persist::clflush) os::flush_clflush(line);
  }
}

template <os::Persist how>
void run(PersistLoop& loop, std::size_t fences) {
  std::uint64_t state = loop.state;
  for (std::size_t f = 0; f < fences; ++f) {
    const std::uint64_t stamp = ++loop.stamp;
    for (std::size_t b = 0; b < loop.blocks_per_fence; ++b) {
      state = next_mmix(state);
      const std::size_t block = (state >> 32) * loop.blocks >> 32;
      std::byte* first = loop.base + block * loop.block_lines * os::cache_line_bytes;
      for (std::size_t i = 0; i < loop.block_lines; ++i)
        persist_line<how>(first + i * os::cache_line_bytes, stamp);
    }
    os::fence();
  }
  loop.state = state;
}

} // namespace

void run_persists(PersistLoop& loop, std::size_t fences) {
  switch (loop.how) {
  case os::Persist::ntstore: return run<os::Persist::ntstore>(loop, fences);
  case os::Persist::clwb: return run<os::Persist::clwb>(loop, fences);
  case os::Persist::clflushopt: return run<os::Persist::clflushopt>(loop, fences);
  case os::Persist::clflush: return run<os::Persist::clflush>(loop, fences);
  case os::Persist::movdir64b: return run<os::Persist::movdir64b>(loop, fences);
  }
}

std::size_t count_stamped_after(const PersistLoop& loop, std::uint64_t stamp) {
  std::size_t found = 0;
  for (std::size_t line = 0; line < loop.blocks * loop.block_lines; ++line) {
    std::uint64_t word = 0;
    std::memcpy(&word, loop.base + line * os::cache_line_bytes, sizeof word);
    found += word > stamp;
  }
  return found;
}

} // namespace nearfar::kernels
