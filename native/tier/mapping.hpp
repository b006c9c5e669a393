// Mapping a tier: memory of the requested kind, or an error; never a silent substitute.
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

/// The file or device of a tier, which the caller maps; without a descriptor if the tier is memory.
/// A file has no name. A device that holds a pool is refused (exists).
Result<os::File> open_backing(const Spec& spec);

/// Claims all of a device for the holder of `file`: others can neither map() nor claim it. Errors:
/// unsupported (part of it is in use).
Status claim_device(const Spec& spec, const os::File& file);

/// Maps `bytes` > 0 of a tier. Refuses, before it allocates anything, if the tier has less free
/// capacity. Pages are untouched unless the tier prefaults (shm:, populate). A paced tier is
/// refused (unsupported), so that no loop runs on it at the speed of the memory that emulates it.
Result<Mapping> map(const Spec& spec, std::size_t bytes);

/// The same for callers that charge a kernels::Pacer for every line they touch; also maps paced
/// tiers.
Result<Mapping> map_to_pace(const Spec& spec, std::size_t bytes);

/// Call it after the pages have been touched. Fails (failed_check) if the kernel allocated other
/// pages than the spec requests. At least 95 % of a thp tier must be on huge pages.
Status verify_pages(const Spec& spec, const Mapping& mapping);

} // namespace nearfar::tier
