// A whole pool, read as untrusted bytes.
//
// Purpose   `nearfar pool info` and `pool check`: one walk that reports contents and errors.
//           Nothing is written.
// Thread safety  none: functions of their arguments.
#pragma once

#include "inspect/census.hpp"
#include "inspect/header.hpp"
#include "inspect/lanes.hpp"
#include "inspect/typed.hpp"

namespace nearfar::inspect {

struct PoolReport {
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

/// Examines all of it; parts that cannot be found are left out and named in the findings.
PoolReport examine(const PoolView& view);

/// Reads header, descriptor and lanes, replays the logs into `recovered`, then passes each object
/// to `sink` and each object in chunks of the typed layer to `typed_sink`. Fills `pool`.
/// examine(view) is this with counting sinks.
void examine(const PoolView& view, PatchedView& recovered, ObjectSink& sink, ObjectSink& typed_sink,
             PoolReport& pool);

} // namespace nearfar::inspect
