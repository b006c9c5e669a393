// Sections of code that no signal handler of the program may interrupt.
//
// Purpose        a handler may call fork(), which must not meet this library half-way through a
//                fork or the creation of a tier.
// Freestanding   no exceptions, no C++ runtime; nothing allocates.
#pragma once

#include <csignal>

namespace nearfar::os {

/// Blocks all signals of the calling thread but those of faults. Returns the mask before.
sigset_t block_signals();
void restore_signals(const sigset_t& before);

/// Blocks them for a block of code.
class SignalsBlocked {
public:
  SignalsBlocked() : before_(block_signals()) {}
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { restore_signals(before_); }

private:
  sigset_t before_;
};

} // namespace nearfar::os
