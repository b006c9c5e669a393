// SPDX-License-Identifier: MIT (native/trace/recorder/LICENSE), as malloc_entry_points.hpp includes
// it
#pragma once

namespace nearfar {

/// The call of a function.
struct CallSite {
  const void* return_address;
  const void* frame; ///< of the called function; its first word is the caller's frame pointer
};

} // namespace nearfar

/// The call of the function that contains this.
#define NEARFAR_CALL_SITE                                                                          \
  ::nearfar::CallSite { __builtin_return_address(0), __builtin_frame_address(0) }

/// A function that a library defines in place of libc's.
#define NEARFAR_ENTRY_POINT __attribute__((visibility("default"), used))
