// Copies that the recorder makes in place of the C library and libpmem: into the pool through its
// writable mapping, so that no store faults.
#pragma once

#include <cstddef>

#include "storelog/event.hpp"

namespace nearfar::crash::runtime {

/// memmove(): the program's own addresses decide the direction. Those of the writable mapping lie
/// elsewhere and do not show that two ranges overlap.
void move_bytes(char* to, const char* from, std::size_t bytes);
void fill_bytes(char* to, int value, std::size_t bytes);

/// The same, and records the bytes that lie in the pool as stores of `code`, a return address.
void recorded_copy(void* to, const void* from, std::size_t bytes, storelog::EventKind kind,
                   const void* code);
void recorded_fill(void* to, int value, std::size_t bytes, storelog::EventKind kind,
                   const void* code);

/// While it exists, copies that libpmem makes on the calling thread are attributed to the program's
/// call that returns to `code`.
class CopyingFor {
public:
  explicit CopyingFor(const void* code);
  CopyingFor(const CopyingFor&) = delete;
  CopyingFor& operator=(const CopyingFor&) = delete;
  ~CopyingFor();

private:
  const void* before_;
};
/// The code to which a copy is attributed that `caller` requested of libpmem.
const void* copying_for(const void* caller);

} // namespace nearfar::crash::runtime
