// Bookkeeping memory: near, outside all tiers, never given back to the system.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>

#include "os/lock.hpp"

namespace nearfar::alloc {

/// `bytes` at a multiple of 64, contents undefined; nullptr if the system has none.
void* take_metadata(std::size_t bytes);
/// `bytes` as they were taken.
void return_metadata(void* memory, std::size_t bytes);
std::size_t metadata_bytes();

os::Lock& metadata_lock();

} // namespace nearfar::alloc
