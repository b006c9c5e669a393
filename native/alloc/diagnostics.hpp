// Diagnostics: the message of a thread's last failure, messages on standard error, and the end of a
// process that passes an invalid pointer.
//
// Thread safety  any thread; allocates nothing.
#pragma once

#include <cstddef>

#include "base/result.hpp"

namespace nearfar::alloc {

class Allocator;

/// Stores the message that hm_error() returns, and sets errno.
[[gnu::format(printf, 2, 3)]] void set_error(int code, const char* format, ...);
void set_error(const Error& error);
/// Errors of an unknown tier number, and of a process without address space for tiers.
void set_invalid_tier(int tier);
void set_no_window();
const char* last_error();

/// The errno of an error.
int errno_of(const Error& error);

/// Reports why a pointer that was passed to `call` is invalid, and aborts.
[[noreturn]] void abort_on_invalid_pointer(const Allocator& allocator, const char* call,
                                           const void* ptr);

/// Report what hardening detected in a block, and abort: bytes behind its size were overwritten, it
/// was freed with a wrong size, or it was written after it was freed.
[[noreturn]] void abort_on_overflow(const Allocator& allocator, const char* call, const void* block,
                                    std::size_t bytes);
[[noreturn]] void abort_on_wrong_size(const void* block, std::size_t size, std::size_t requested);
[[noreturn]] void abort_on_late_write(const Allocator& allocator, const void* block,
                                      std::size_t bytes);

/// Writes a message to standard error, as "libhmalloc: ...".
[[gnu::format(printf, 1, 2)]] void log_error(const char* format, ...);

} // namespace nearfar::alloc
