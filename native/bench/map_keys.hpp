// Keys of pmembench's map benchmarks.
#pragma once

#include <cstdint>
#include <vector>

namespace nearfar::bench {

/// `count` keys in order of insertion; moves the seed on.
std::vector<std::uint64_t> draw_keys(std::uint64_t count, std::uint32_t& seed);

/// The same keys in a random order, drawn without repetition as pmembench does.
std::vector<std::uint64_t> shuffled(std::vector<std::uint64_t> keys, std::uint32_t& seed);

} // namespace nearfar::bench
