// Sections of code that no signal handler of the program may interrupt.
//
// Purpose        a handler may call fork(), which must not happen in the middle of a fork or of the
//                creation of a tier by this library.
// Freestanding   no exceptions, no C++ runtime; nothing allocates.
#pragma once

#include <cstdint>

namespace nearfar::os {

/// The kernel's mask of signals, a sixteenth of glibc's: handlers may run on a small stack.
using SignalMask = std::uint64_t;

/// Blocks all signals of the calling thread but those of faults and of glibc. Returns the mask
/// before.
SignalMask block_signals();
void restore_signals(SignalMask before);

/// Blocks these signals until the end of its scope.
class SignalsBlocked {
public:
  SignalsBlocked() : before_(block_signals()) {}
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { restore_signals(before_); }

private:
  SignalMask before_;
};

} // namespace nearfar::os
