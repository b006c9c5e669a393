// Accounts of tiers and threads, folded when they are read, and written as text.
//
// Thread safety  any thread; never in a signal handler.
#pragma once

#include <nearfar/hmalloc.h>

#include "base/result.hpp"

namespace nearfar::alloc {

void fold_stats(unsigned tier, hm_tier_stats& stats);

/// Writes the accounts of all tiers and threads: a line `hmalloc-stats 1`, then `key value` lines.
/// An errno, 0 for success.
int write_stats(int fd);

/// Has them written when the process ends or is sent a signal: `when` is "exit" or "signal:NUMBER",
/// and "rules" to count what each rule of a plan places, separated by commas; `file` is empty for
/// stderr. Errors: bad_input.
Status set_statistics(const char* when, const char* file);

} // namespace nearfar::alloc
