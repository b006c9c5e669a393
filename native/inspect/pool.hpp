// A whole pool: every part of it, read as bytes that may be wrong.
//
// Purpose   `nearfar pool info` and `pool check`: one walk that reports what is there and what is
//           not as it should be. Nothing is written, nothing is trusted.
#pragma once

#include "inspect/census.hpp"
#include "inspect/header.hpp"
#include "inspect/lanes.hpp"
#include "inspect/typed.hpp"

namespace nearfar::inspect {

struct Pool {
  FileKind kind = FileKind::other;
  Offset file_bytes = 0;
  Header header;
  Descriptor descriptor;
  Lanes lanes;
  Zones zones;
  Census census;
  Typed typed; ///< of a pool that nearfar's typed layer made
  Findings findings;
};

/// Looks at all of it; parts that cannot be found are left out and named in the findings.
Pool examine(const PoolView& view);

/// Reads header, descriptor and lanes and replays the logs, then has `sink` see every object as
/// recovery would leave it, and `typed` those within chunks of the typed layer. What examine() is
/// made of, for those who want more than counts.
void examine(const PoolView& view, PatchedView& recovered, ObjectSink& sink, ObjectSink& typed,
             Pool& pool);

} // namespace nearfar::inspect
