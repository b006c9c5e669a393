#include "structures/pmdk_maps.hpp"

#include <cerrno>

namespace nearfar::structures {

Error pool_error(const char* doing) {
  const int code = errno;
  const bool full = code == ENOMEM || code == ENOSPC;
  Error error = Error::make(full ? Errc::no_space : Errc::os_error, "%s failed: %s", doing,
                            pmemobj_errormsg());
  error.os_errno = code;
  return error.try_next(full ? "make a larger pool" : "check the pool with pmempool check");
}

} // namespace nearfar::structures
