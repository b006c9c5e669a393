// Memory of this process, as the kernel counts it.
//
// Thread safety  may be called from any thread; figures are of the whole process.
#pragma once

#include <cstddef>

#include "base/result.hpp"

namespace nearfar::os {

/// Resident memory of this process, pages of files and shared memory that it maps included.
struct ProcessMemory {
  std::size_t resident_bytes = 0; ///< now, page by page (/proc/self/smaps_rollup)
  /// The most it ever was since the process was started (VmHWM); the kernel counts that in batches,
  /// to within 256 KiB a processor.
  std::size_t peak_bytes = 0;
};

/// Walks the page tables: milliseconds a GiB. Errors: os_error (no /proc).
Result<ProcessMemory> process_memory();

} // namespace nearfar::os
