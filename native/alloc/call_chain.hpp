// The return addresses of a call, as far as a plan compares them.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>

#include "alloc/site_frame.hpp"
#include "base/call_site.hpp"
#include "os/address_space.hpp"

namespace nearfar::alloc {

/// Innermost first.
struct CallChain {
  const void* addresses[longest_chain];
  std::size_t length = 0;
};

/// Appends return addresses by frame pointers, up to `longest`. On the thread's own stack, which may
/// be empty if it is unknown, everything from this frame up is mapped; other stacks are those of
/// coroutines and signal handlers.
void walk_pointers(const void* frame, const os::Area& stack, std::size_t longest, CallChain& chain);

/// Appends return addresses by unwind tables, up to `longest`. Those in this library come first and
/// are skipped. May allocate.
void walk_tables(const void* return_address, std::size_t longest, CallChain& chain);

} // namespace nearfar::alloc
