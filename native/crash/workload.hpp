// Seeded mixes of operations that make a structure grow, shrink and meet every branch.
#pragma once

#include <vector>

#include "crash/subject.hpp"

namespace nearfar::crash {

/// Keys of that many operations are 1 to this.
inline std::uint64_t max_key(std::size_t count) { return count / 2 + 8; }

/// `count` operations: three in four insert during the first three fifths, one in three after;
/// the others remove. Two in three removals name a key that was inserted; keys are drawn from
/// max_key(count), so some insertions meet a key that is there. With `moves`, half of the removals
/// move a key instead. Values are never 0. The same for the same seed everywhere.
std::vector<Operation> mixed_operations(std::size_t count, std::uint64_t seed, bool moves);

} // namespace nearfar::crash
