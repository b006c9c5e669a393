#include "inspect/typed.hpp"

namespace nearfar::inspect {

Typed examine_typed(const PoolView& seen, const Descriptor& descriptor, PatchedView& recovered,
                    Findings& findings, ObjectSink& sink) {
  Typed typed;
  typed.store = read_object_store(seen, descriptor, findings);
  if (!typed.store.usable || typed.store.path != poolformat::Path::redo) return typed;
  typed.records = replay_records(seen, typed.store, recovered, findings);
  if (!typed.records.replayed) {
    findings.note("log", typed.store.log,
                  "the records are too large to be replayed here: typed objects are left out");
    return typed;
  }
  const PoolView& after = typed.records.count != 0 ? recovered : seen;
  if (typed.records.count != 0) // the first page of the directory may be new
    typed.store.directory = read_object_store(after, descriptor, findings).directory;
  typed.object_chunks = walk_object_chunks(after, descriptor, typed.store, findings, sink);
  return typed;
}

} // namespace nearfar::inspect
