// Functions that stand before those of the same name in the libraries of the program.
#pragma once

#include <dlfcn.h>

#define NEARFAR_CALLER __builtin_return_address(0)
#define NEARFAR_EXPORT extern "C" [[gnu::visibility("default")]]

namespace nearfar::crash::runtime {

/// The function that ours of this name hides.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

} // namespace nearfar::crash::runtime
