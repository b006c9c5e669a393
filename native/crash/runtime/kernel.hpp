// System calls of the recorder's own: it replaces syscall() (raw_calls.cpp).
#pragma once

#include "os/system_call.hpp"

namespace nearfar::crash::runtime {

using os::as_word;
using os::system_call;
using os::system_call_of;
using os::Words;

inline const void* pointer(long word) { return reinterpret_cast<const void*>(word); }

} // namespace nearfar::crash::runtime
