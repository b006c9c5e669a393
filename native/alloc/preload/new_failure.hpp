// operator new when memory is exhausted: libstdc++ does what the standard requires, if the program
// has it.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>

namespace nearfar::alloc {

/// Calls the program's new handler, which may throw. Returns false if there is none.
bool call_new_handler();

/// Throws std::bad_alloc. Aborts if the program has no C++ library.
[[noreturn]] void throw_bad_alloc(std::size_t size);

/// operator new(nothrow) of the C++ library, which calls operator new and catches what a handler
/// throws. Without that library no handler exists: returns nullptr.
void* call_library_nothrow_new(std::size_t size, std::size_t alignment);

} // namespace nearfar::alloc
