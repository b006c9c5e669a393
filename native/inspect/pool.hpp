// A whole pool: every part of it, read as bytes that may be wrong.
//
// Purpose   `nearfar pool info` and `pool check`: one walk that tells what is there and what is not
//           as it should be. Nothing is written, nothing is trusted.
#pragma once

#include "inspect/census.hpp"
#include "inspect/header.hpp"
#include "inspect/lanes.hpp"

namespace nearfar::inspect {

struct Pool {
  Kind kind = Kind::other;
  Offset file_bytes = 0;
  Header header;
  Descriptor descriptor;
  Lanes lanes;
  Zones zones;
  Census census;
  Findings findings;
};

/// Looks at all of it; parts that cannot be found are left out and named in the findings.
Pool examine(const Source& source);

/// Reads header, descriptor and lanes and replays the logs, then has `sink` see every object as
/// recovery would leave it. What examine() is made of, for those who want more than counts.
void examine(const Source& source, PatchedSource& recovered, ObjectSink& sink, Pool& pool);

} // namespace nearfar::inspect
