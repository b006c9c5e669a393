// What is wrong with a recorded program without looking at images: stores that are never made
// durable, stores that a transaction does not log, and calls that cost time for nothing.
//
// Model          a store reaches memory when its line is flushed afterwards, and a fence of the
//                thread that flushed follows (non-temporal stores need the fence only). Within a
//                transaction of libpmemobj, a store is undone if its bytes were logged before it.
// Granularity    4 bytes for what is durable, 1 for what is logged: neighboring variables in a line
//                are judged separately.
// Libraries      what libpmem and libpmemobj store or flush on their own is followed, not judged.
// Judge          judge.hpp, in the program itself. Here its findings get their places.
// Thread safety  none: values.
#pragma once

#include <span>
#include <vector>

#include "crash/judge.hpp"

namespace nearfar::crash {

const char* name(Rule rule);

/// One rule at one place of the program, which was reached in one way.
struct LintFinding {
  Rule rule;
  storelog::Site site;
  storelog::Site other;
  std::uint64_t address = 0; ///< of the first occurrence, from the start of the pool
  std::uint32_t bytes = 0;
  /// Occurrences; for unflushed and unfenced, byte ranges that are not durable at the end.
  std::uint64_t count = 0;
  std::vector<storelog::Site> calls; ///< that led to `site` when it was first seen, innermost first
};

/// In the order of the rules, then of the numbers of the sites, which index `sites` and `stacks`.
std::vector<LintFinding> with_sites(std::span<const JudgedFinding> found,
                                    std::span<const storelog::Site> sites,
                                    std::span<const std::vector<storelog::Site>> stacks = {});

} // namespace nearfar::crash
