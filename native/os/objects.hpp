// Loaded programs and libraries, and the stack of the calling thread.
//
// Thread safety  any thread. Nothing allocates, but the first call of call_chain_by_tables().
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/address_space.hpp"

namespace nearfar::os {

/// The object that holds an address of code.
struct Object {
  std::uintptr_t base = 0; ///< what the loader added to the addresses in the file
  unsigned char build_id[32] = {};
  std::size_t build_id_bytes = 0; ///< 0: it has none
  char name[128] = "";            ///< last part of its path; empty for the program itself
};
bool find_object(const void* address, Object& object);

/// The stack that the calling thread was started with; empty if it is unknown. May allocate.
Area thread_stack();

/// Return addresses of the calling thread, innermost first, this function left out. By unwind
/// tables: microseconds.
std::size_t call_chain_by_tables(const void** addresses, std::size_t most);

} // namespace nearfar::os
