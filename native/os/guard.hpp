// Runs code that may crash or not end, and returns how it ended.
//
// Method         signal handlers and siglongjmp. No destructor of the code runs: memory and locks
//                that it held stay held. For code on damaged data, in a program made for it.
// Thread safety  one thread of the process, the one that made the Guard; one Guard at a time.
// Time           CPU time of the process, checked `ticks_per_limit` times within the limit.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace nearfar::os {

/// End of guarded code.
enum class Ending : unsigned char { returned, crashed, hung };

struct Guarded {
  Ending ending = Ending::returned;
  int signal = 0;             ///< if crashed: SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT
  std::uintptr_t address = 0; ///< that was touched, for SIGSEGV and SIGBUS
};

class Guard {
public:
  /// Installs the handlers and starts a timer. `limit_ms` is the CPU time that one call may take.
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
