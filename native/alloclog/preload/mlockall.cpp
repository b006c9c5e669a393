// mlockall() of the program would read the terabytes of the log's mapping into memory. Therefore
// pages that are already mapped are locked when they are first used, and those of the log are not
// locked.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "alloclog/preload/state.hpp"

extern "C" __attribute__((visibility("default"), used)) int mlockall(int flags) noexcept {
  using nearfar::alloclog::state;
  const bool has_log = state.level0 != nullptr;
  const int more = has_log && (flags & MCL_CURRENT) != 0 ? MCL_ONFAULT : 0;
  const long result = syscall(SYS_mlockall, flags | more);
  if (result == 0 && has_log) munlock(state.slot, nearfar::alloclog::slot_bytes);
  return static_cast<int>(result);
}
