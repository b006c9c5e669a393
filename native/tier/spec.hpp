// The grammar of tiers: every --tier of every verb.
//
//   dram | numa:N | fsdax:PATH | devdax:/dev/daxX.Y | shm:[DIR] | file:PATH
//                        and every other kind that has a file in kinds/
//   paced:TIER@PROFILE   one of these, slowed down to a device profile: an emulated slow tier
//   each followed by options: ,pages=4k|2m|1g|thp  ,populate
//
// PATH of fsdax: and file: is a directory, in which the file has no name while it is used, so that
// nothing is left behind. For pools it can also be the name of a file that does not exist yet.
//
// Freestanding   no exceptions, no std::string.
#pragma once

#include "base/result.hpp"
#include "os/pages.hpp"
#include "tier/kind.hpp"

namespace nearfar::tier {

/// Speed of a paced tier. The grammar has no figures: the caller takes them from the profile that
/// the spec names.
struct Pace {
  double read_line_ns = 0;      ///< delay of a thread for each line of 64 bytes that it reads
  double write_line_ns = 0;     ///< and that it writes
  double read_bytes_per_s = 0;  ///< what all threads of the tier share; > 0
  double write_bytes_per_s = 0; ///< > 0
  double jitter = 0;            ///< share of a delay that varies at random, 0 to 1

  bool operator==(const Pace&) const = default;
};

extern const TierKind dram_kind; // what lies nowhere else

struct Spec {
  const TierKind* kind = &dram_kind; ///< never null
  int node = -1;                     ///< of a kind that names a node
  char path[256] = "";               ///< of a kind that names a file, a directory or a device
  os::PageSize pages = os::PageSize::system;
  bool populate = false;  ///< touch every page when mapping; shm: always does
  char profile[256] = ""; ///< paced: only
  Pace pace;              ///< paced: only

  bool paced() const { return profile[0] != '\0'; }
  /// Whether it names a place for a pool: a file, a device, a node.
  bool holds_pools() const { return node >= 0 || path[0] != '\0'; }
};

/// Whether both name the same memory: page size and when it is touched do not matter.
bool same_memory(const Spec& a, const Spec& b);

/// Parses a tier. Errors (bad_input) name the offending part and the grammar.
Result<Spec> parse(const char* text);

} // namespace nearfar::tier
