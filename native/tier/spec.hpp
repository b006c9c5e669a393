// The grammar of tiers: every --tier of every verb.
//
//   dram | numa:N | fsdax:PATH | devdax:/dev/daxX.Y | shm:[DIR] | file:PATH
//   each followed by options: ,pages=4k|2m|1g|thp  ,populate
//
// PATH of fsdax: and file: is a directory, or the name of a file that does not exist yet. Either
// way the file has no name while it is used, so nothing is left behind.
//
// Freestanding   no exceptions, no std::string.
#pragma once

#include "base/result.hpp"
#include "os/pages.hpp"

namespace nearfar::tier {

enum class Kind : unsigned char { dram, numa, fsdax, devdax, shm, file };

const char* kind_name(Kind kind);

struct Spec {
  Kind kind = Kind::dram;
  int node = -1;       ///< numa: only
  char path[256] = ""; ///< fsdax:, devdax:, shm:, file:
  os::PageSize pages = os::PageSize::system;
  bool populate = false; ///< touch every page when mapping; shm: always does
};

/// Parses a tier. Errors (bad_input) name the offending part and the grammar.
Result<Spec> parse(const char* text);

} // namespace nearfar::tier
