// Preserves errno: functions that replace successful ones of libc must not change it.
#pragma once

#include <cerrno>

namespace nearfar::alloc {

/// Saves errno until the end of its scope.
class ErrnoSaved {
public:
  ErrnoSaved() = default;
  ErrnoSaved(const ErrnoSaved&) = delete;
  ErrnoSaved& operator=(const ErrnoSaved&) = delete;
  ~ErrnoSaved() { errno = code_; }

private:
  int code_ = errno;
};

} // namespace nearfar::alloc
