// Flushes, fences and non-temporal stores that a program has as machine instructions, written as
// intrinsics or in assembly: no call of theirs passes through the recorder.
//
// How            the executable segments of the program and its libraries are searched for the bytes
//                of these instructions, and decoded around them (Zydis). A flush or fence found
//                there gives way to a breakpoint, whose trap is recorded with the address that the
//                instruction names. The instruction itself is not carried out: recorded programs do
//                not rely on it.
//                Libraries that are loaded later are searched when the dynamic linker has them.
// Left out       the C library, the dynamic linker and libpmem, whose calls are recorded; the
//                instructions of crash_intrinsics.h, which reports them itself.
// Thread safety  search_modules() under a lock of its own; the others in any thread and handler.
#pragma once

#include <cstddef>
#include <ucontext.h>

namespace nearfar::crash::runtime {

/// Searches modules that are new since the last call. With `watch`, places breakpoints; without,
/// logs how many instructions were not seen.
void search_modules(bool watch);
/// How many flushes and fences code has; 0 if it flushes nothing.
int count_flushes(const void* code, std::size_t bytes);
/// Whether a trap is one of these breakpoints; records it and steps over it.
bool on_breakpoint(ucontext_t* machine);
/// Whether the instruction there is a non-temporal store.
bool is_non_temporal(const void* code);
/// Where in a page the instruction that faulted there begins to store. Of one that stores more than a
/// vector, as fxsave does, the fault can be at any of its bytes.
const std::byte* first_stored(const void* fault, const ucontext_t& machine);
/// How many bytes the instruction there stores; 1 if that is not known.
std::size_t stored_bytes(const void* code);
/// False for an instruction that stores some of these bytes or none: a compare and exchange, stores
/// under a mask, and stores of the state of the processor.
bool stores_all(const void* code);

} // namespace nearfar::crash::runtime
