// Runs code that may crash or never end, and says so instead of dying with it.
//
// How            signal handlers and siglongjmp: what the code held (memory, locks) stays held, for
//                no destructor runs. For code on damaged data, in a program made for it.
// Thread safety  one thread of the process, the one that made the Guard; one Guard at a time.
// Time           CPU time of the process, looked at `ticks_per_limit` times within the limit.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace nearfar::os {

/// How guarded code ended.
enum class Ending : unsigned char { returned, crashed, hung };

struct Guarded {
  Ending ending = Ending::returned;
  int signal = 0;             ///< if crashed: SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT
  std::uintptr_t address = 0; ///< that was touched, for SIGSEGV and SIGBUS
};

class Guard {
public:
  /// Takes the signals and starts a timer. `limit_ms` is what one call may take of CPU time.
  explicit Guard(std::uint64_t limit_ms);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard();

  /// Calls call(context). Costs about 10 ns.
  Guarded run(void (*call)(void*), void* context);

  static constexpr std::uint64_t ticks_per_limit = 4;

private:
  struct Saved;
  Saved* saved_;
};

} // namespace nearfar::os
