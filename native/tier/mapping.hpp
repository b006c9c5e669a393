// Mapping a tier: memory of the kind that was asked for, or an error; never a silent substitute.
// libhmalloc maps by itself (alloc/tier_mapping.cpp).
//
// Thread safety  a Mapping is made and destroyed by one thread, its memory used by any.
// Freestanding   no exceptions, no std::string.
#pragma once

#include "base/result.hpp"
#include "os/file.hpp"
#include "os/pages.hpp"
#include "tier/spec.hpp"

namespace nearfar::tier {

struct Mapping {
  os::MappedRange range;
  os::File file;     ///< the unnamed file, or the device; -1 where memory is mapped
  bool sync = false; ///< MAP_SYNC holds: a flush alone makes a store durable on real hardware

  std::byte* data() const { return range.data(); }
};

/// Room that the tier has for this user now, in bytes.
Result<std::size_t> capacity(const Spec& spec);

/// The file or device behind a tier, to be mapped by who calls; without a descriptor where that is
/// memory. A file has no name. A device that holds a pool is refused (exists).
Result<os::File> open_backing(const Spec& spec);

/// Claims all of a device for who holds `file`, against all that map() or claim it. Errors:
/// unsupported (part of it is in use).
Status claim_device(const Spec& spec, const os::File& file);

/// Maps `bytes` > 0 of a tier. Refuses before it allocates anything when the tier has not that much
/// room. Pages are untouched unless the tier prefaults (shm:, populate). A paced tier is refused
/// (unsupported), so that no loop runs on it at the speed of the memory behind it.
Result<Mapping> map(const Spec& spec, std::size_t bytes);

/// The same for those that charge a kernels::Pacer with every line they touch: paced or not.
Result<Mapping> map_to_pace(const Spec& spec, std::size_t bytes);

/// To be called once the pages have been touched: fails (failed_check) where the kernel gave pages
/// other than the spec asked for. At least 95 % of a thp tier must lie on huge pages.
Status verify_pages(const Spec& spec, const Mapping& mapping);

} // namespace nearfar::tier
