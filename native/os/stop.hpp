// Stop requests by SIGTERM: a program ends in order and reports what it has found.
//
// Thread safety  all of it; the flag is one for the process.
#pragma once

#include <csignal>

namespace nearfar::os {

inline volatile std::sig_atomic_t stop_flag = 0; ///< not for users

/// From now on SIGTERM does not end this process, but makes stop_wanted() true. Interrupted system
/// calls are restarted.
inline void stop_on_request() {
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = [](int) { stop_flag = 1; };
  sigaction(SIGTERM, &action, nullptr);
}

inline bool stop_wanted() { return stop_flag != 0; }

} // namespace nearfar::os
