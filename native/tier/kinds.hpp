// All kinds of tiers, one file in kinds/ each.
#pragma once

#include "tier/kind.hpp"
#include "tier/spec.hpp"

namespace nearfar::tier {

#define NEARFAR_TIER(name) extern const TierKind name##_kind;
#include "tier/kinds.inc"
#undef NEARFAR_TIER

} // namespace nearfar::tier
