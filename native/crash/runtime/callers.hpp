// Where the program called libpmem or libpmemobj: the line that users know.
//
// Thread safety  the lock of the log is held (recording.cpp).
#pragma once

#include <span>

namespace nearfar::crash::runtime {

/// Return addresses; null where there is none.
struct Callers {
  const void* library = nullptr; ///< in libpmem or libpmemobj, of a call of the C library
  const void* program = nullptr; ///< in the program, of the call of a library
};

/// The calls that led to a store at `code`, if that is of the C library, libpmem or libpmemobj; else
/// none. Walks the stack by its unwind tables: some microseconds.
Callers callers_of(const void* code);

/// The calls in the program that led to where the recorder is now, innermost first, without libraries:
/// as many return addresses as there are, or as fit. The program's own place is left out.
std::span<const void*> program_stack(std::span<const void*> into);

/// Whether code is of libpmem or libpmemobj.
bool is_in_library(const void* code);

} // namespace nearfar::crash::runtime
