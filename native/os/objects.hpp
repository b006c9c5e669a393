// Loaded programs and libraries, and the stack of the calling thread.
//
// Thread safety  any thread. Nothing allocates, but the first call of call_chain_by_tables().
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/address_space.hpp"

namespace nearfar::os {

/// Writable memory of an object, whole pages.
struct DataSegment {
  Area pages;
  Area from_file; ///< of these: initialized from the file, and writable after relocation
};

struct Object {
  static constexpr unsigned max_segments = 4;
  std::uintptr_t base = 0; ///< what the loader added to the addresses in the file
  unsigned char build_id[32] = {};
  std::size_t build_id_bytes = 0;      ///< 0: it has none
  char name[128] = "";                 ///< last part of its path; empty for the program itself
  Area extent;                         ///< from its first segment to its last, by for_each_object()
  DataSegment data[max_segments] = {}; ///< the same: .data and .bss, in the order of addresses
  unsigned data_segments = 0;
};

/// The object that holds an address of code.
bool find_object(const void* address, Object& object);

/// Calls visit(object, context) for each loaded object. The loader's lock is held meanwhile: visit
/// acquires no lock, and neither loads objects nor looks symbols up.
void for_each_object(void (*visit)(const Object& object, void* context), void* context);

/// The stack that the calling thread was started with; empty if it is unknown. May allocate.
Area thread_stack();

/// Return addresses of the calling thread, innermost first, this function left out. By unwind
/// tables: microseconds.
std::size_t call_chain_by_tables(const void** addresses, std::size_t most);

} // namespace nearfar::os
