// What went wrong: the sentence of a thread's last failure, and the end of a process that misuses
// its heap.
//
// Thread safety  any thread; nothing here allocates.
#pragma once

#include "base/result.hpp"

namespace nearfar::alloc {

/// Keeps a sentence for hm_error() and sets errno.
[[gnu::format(printf, 2, 3)]] void report(int code, const char* format, ...);
void report(const Error& error);
const char* last_report();

/// The errno that stands for an error.
int errno_of(const Error& error);

/// Says what is wrong with a pointer that `call` was given, and aborts.
[[noreturn]] void misuse(const char* call, const void* ptr);

/// Says a sentence on stderr, as "libhmalloc: ...".
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

} // namespace nearfar::alloc
