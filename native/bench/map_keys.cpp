#include "bench/map_keys.hpp"

#include <utility>

#include "cache/map_replay.hpp"

namespace nearfar::bench {

namespace {

std::uint64_t draw(std::uint32_t& seed) {
  const std::uint64_t low = cache::glibc_rand_r(seed);
  const std::uint64_t high = cache::glibc_rand_r(seed);
  return high << 32 | low;
}

} // namespace

std::vector<std::uint64_t> draw_keys(std::uint64_t count, std::uint32_t& seed) {
  std::vector<std::uint64_t> keys(count);
  for (std::uint64_t& key : keys)
    key = draw(seed);
  return keys;
}

std::vector<std::uint64_t> shuffled(std::vector<std::uint64_t> keys, std::uint32_t& seed) {
  std::vector<std::uint64_t> order(keys.size());
  std::size_t left = keys.size();
  for (std::uint64_t& key : order) {
    const std::uint64_t at = draw(seed) % left;
    key = keys[at];
    std::swap(keys[at], keys[--left]);
  }
  return order;
}

} // namespace nearfar::bench
