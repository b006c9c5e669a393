// Failure of operator new, handled by libstdc++ if the program has loaded it.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>

namespace nearfar::alloc {

/// Calls the program's new handler, which may throw. Returns false if there is none.
bool call_new_handler();

/// Throws std::bad_alloc. Aborts if the program has no C++ library.
[[noreturn]] void throw_bad_alloc(std::size_t size);

} // namespace nearfar::alloc
