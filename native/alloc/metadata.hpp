// Memory for metadata: near, outside all tiers, shared by all allocators of the process. Small
// pieces are reused, and never returned to the system.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>

#include "os/lock.hpp"

namespace nearfar::alloc {

/// `bytes` aligned to 64, contents undefined; nullptr if the system has no memory.
void* allocate_metadata(std::size_t bytes);
/// `bytes` as allocated.
void free_metadata(void* memory, std::size_t bytes);
std::size_t metadata_bytes();

os::Lock& metadata_lock();

} // namespace nearfar::alloc
