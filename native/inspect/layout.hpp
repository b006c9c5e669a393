// The libpmemobj layout under the names that this layer uses.
#pragma once

#include "poolformat/pmdk.hpp"

namespace nearfar::inspect {

using namespace pmdk;

} // namespace nearfar::inspect
