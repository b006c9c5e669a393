// The calls that led to an event: a store in a helper function says little without its caller.
//
// Thread safety  the lock of the log is held (lock.hpp).
#pragma once

#include <array>
#include <span>

namespace nearfar::crash::runtime {

/// A return address and where it lies on the stack.
struct Return {
  const void* const* slot = nullptr;
  const void* code = nullptr; ///< null: there is none

  bool is_there() const { return slot == nullptr || *slot == code; }
};

struct Callers {
  static constexpr int most = 3;
  /// Where libpmem or libpmemobj called the C library, if the C library made the event.
  Return library;
  /// Where the program called a library, if a library made the event.
  Return program;
  /// Where the program called the function that made the event or called the library, then where it
  /// called that function's caller, and so on. Successive calls from one place (recursion) count once.
  std::array<Return, most> outward;

  /// While the same return addresses lie in the same places, the callers are the same.
  bool are_there() const;
};

/// The calls that led to `code` where the recorder is now. Walks the stack by its unwind tables: some
/// microseconds.
Callers find_callers(const void* code);

/// The calls in the program that led to where the recorder is now, innermost first, without libraries:
/// as many return addresses as there are, or as fit. The program's own place is left out.
std::span<const void*> program_stack(std::span<const void*> into);

/// Whether code is of libpmem or libpmemobj.
bool is_in_library(const void* code);

/// A module was unloaded: its addresses can be those of other code. The lock need not be held.
void forget_owners();

} // namespace nearfar::crash::runtime
