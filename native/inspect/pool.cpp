#include "inspect/pool.hpp"

#include <algorithm>
#include <cinttypes>

namespace nearfar::inspect {

namespace {

/// Passes objects on, and checks that those to which the pool refers are among them.
class NamedObjects final : public ObjectSink {
public:
  NamedObjects(const PoolReport& pool, ObjectSink& next)
      : next_(next), root_(pool.descriptor.root_offset), root_bytes_(pool.descriptor.root_bytes),
        extensions_(pool.lanes.extensions.begin(), pool.lanes.extensions.end()) {}

  void object(const Object& object) override {
    if (object.offset == root_) root_found_ = object.internal && object.bytes >= root_bytes_;
    while (at_ < extensions_.size() && extensions_[at_] < object.offset + object.bytes) {
      if (extensions_[at_] >= object.offset) ++held_;
      ++at_;
    }
    next_.object(object);
  }
  void run(const Run& run, const ChunkGroup& chunk, std::uint64_t used) override {
    next_.run(run, chunk, used);
  }

  void report(Findings& findings) const {
    if (root_ != 0 && !root_found_)
      findings.damage("root", descriptor_at::root_offset,
                      "the root object of %" PRIu64 " bytes is not at offset %#" PRIx64,
                      root_bytes_, root_);
    if (held_ < extensions_.size())
      findings.damage("lane", extensions_.front(),
                      "%zu of %zu extensions of logs lie in no allocated object",
                      extensions_.size() - held_, extensions_.size());
  }

private:
  ObjectSink& next_;
  Offset root_;
  Offset root_bytes_;
  std::vector<Offset> extensions_; ///< upward, as the objects come
  std::size_t at_ = 0;
  std::size_t held_ = 0;
  bool root_found_ = false;
};

/// The opener checks zones and chunks before it replays any log.
void check_unrecovered(const PoolView& view, PoolReport& pool) {
  walk_heap(view, pool.descriptor, pool.findings, [](const ChunkGroup&) {});
}

void walk_objects(const PoolView& view, ObjectSink& sink, PoolReport& pool) {
  NamedObjects named(pool, sink);
  ObjectWalker walker(view, pool.findings, named);
  pool.zones = walk_heap(view, pool.descriptor, pool.findings,
                         [&](const ChunkGroup& chunk) { walker.walk(chunk); });
  named.report(pool.findings);
}

} // namespace

void examine(const PoolView& view, PatchedView& recovered, ObjectSink& sink, ObjectSink& typed_sink,
             PoolReport& pool) {
  pool.file_bytes = view.size();
  pool.header = read_header(view, pool.findings);
  pool.descriptor = read_descriptor(view, pool.findings);
  if (!pool.descriptor.usable) return;
  pool.lanes = read_lanes(view, pool.descriptor, recovered, pool.findings);
  const bool pending = pool.lanes.pending() != 0;
  if (pending) check_unrecovered(view, pool);
  if (pool.lanes.replayed) {
    const PoolView& seen = pending ? static_cast<const PoolView&>(recovered) : view;
    if (pending) read_root(seen, pool.descriptor);
    walk_objects(seen, sink, pool);
    pool.typed = examine_typed(seen, pool.descriptor, recovered, pool.findings, typed_sink);
    return;
  }
  pool.findings.note(
      "lane", pool.descriptor.lanes_offset,
      "unfinished transactions are too large to be replayed here: objects are reported "
      "as they are before recovery");
  walk_objects(view, sink, pool);
}

PoolReport examine(const PoolView& view) {
  PoolReport pool;
  pool.kind = identify(view);
  pool.file_bytes = view.size();
  if (pool.kind != FileKind::object) return pool;
  PatchedView recovered(view);
  Census census;
  NoObjects typed;
  examine(view, recovered, census, typed, pool);
  pool.census = std::move(census);
  return pool;
}

} // namespace nearfar::inspect
