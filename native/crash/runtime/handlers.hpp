// Which signals the recorder handles itself.
#pragma once

#include <csignal>

namespace nearfar::crash::runtime {

/// What the program wants done with a signal that the recorder handles; null for any other signal.
struct sigaction* program_action(int signal);

} // namespace nearfar::crash::runtime
