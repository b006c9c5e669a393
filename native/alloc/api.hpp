// Common functions of the C interface.
#pragma once

#include <nearfar/hmalloc.h>

namespace nearfar::alloc {

/// Configures the process's tiers. Returns whether a tier exists, and sets the error if not.
bool check_tier(hm_tier tier);

} // namespace nearfar::alloc
