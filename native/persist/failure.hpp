// Reason of a failure of libpmemobj.
#pragma once

#include <cerrno>
#include <libpmemobj.h>

namespace nearfar::persist {

inline bool is_full(int code) { return code == ENOMEM || code == ENOSPC; }

/// For a full pool libpmemobj's message is one of an earlier call ("extending the pool by appending
/// parts with headers is not supported!"). `code` is the errno of the failed call.
inline const char* reason(int code) { return is_full(code) ? "no space left" : pmemobj_errormsg(); }

} // namespace nearfar::persist
