// Stacks of the program that lie in the pool (stacks.cpp).
//
// Thread safety  all members
#pragma once

#include <pthread.h>

namespace nearfar::crash::runtime {

/// Ends the recording if a thread with these attributes, or null, would have its stack in the pool.
void refuse_stack_of(const pthread_attr_t* attributes);

} // namespace nearfar::crash::runtime
