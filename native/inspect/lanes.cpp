#include "inspect/lanes.hpp"

#include <cinttypes>

namespace nearfar::inspect {

namespace {

/// Larger snapshots are not replayed: each replayed word costs some sixty bytes of memory.
constexpr Offset max_replayed_bytes = Offset{16} << 20;

constexpr Offset internal_at = 0;
constexpr Offset external_at = internal_at + log_head_bytes + internal_capacity;
constexpr Offset undo_at = external_at + log_head_bytes + external_capacity;
static_assert(undo_at + log_head_bytes + undo_capacity == lane_bytes);

void count(const Log& log, LogCounts& counts) {
  counts.extensions += log.extensions.size();
  if (log.entries.empty()) return;
  ++counts.used;
  if (!log.pending) return;
  ++counts.pending;
  counts.entries += log.entries.size();
}

void report(const Log& log, Findings& findings) {
  if (log.pending)
    findings.note("lane", log.offset, "the %s log holds %zu entries of an unfinished operation",
                  name(log.kind), log.entries.size());
  else if (!log.entries.empty())
    findings.note("lane", log.offset,
                  "the %s log holds %zu entries and no valid checksum: recovery drops them",
                  name(log.kind), log.entries.size());
}

class LaneReader {
public:
  LaneReader(const PoolView& view, const Descriptor& descriptor, PatchedView& patched,
             Findings& findings)
      : view_(view), descriptor_(descriptor), patched_(patched), findings_(findings),
        window_(view) {}

  Lanes read() {
    for (std::uint64_t lane = 0; lane < descriptor_.lane_count; ++lane) {
      take(LogKind::internal, at(lane, internal_at), lanes_.internal);
      take(LogKind::external, at(lane, external_at), lanes_.external);
    }
    if (lanes_.pending() != 0) check_undo_unrecovered();
    for (std::uint64_t lane = 0; lane < descriptor_.lane_count; ++lane)
      take(LogKind::undo, at(lane, undo_at), lanes_.undo);
    return std::move(lanes_);
  }

private:
  Offset at(std::uint64_t lane, Offset within) const {
    return descriptor_.lanes_offset + lane * lane_bytes + within;
  }

  /// Reads a log in the state that the logs before it leave, counts it, and replays it.
  void take(LogKind kind, Offset offset, LogCounts& counts) {
    const Log log = read_log(window_, descriptor_, kind, offset, lanes_.extensions, findings_);
    count(log, counts);
    report(log, findings_);
    if (!log.pending) return;
    if (!apply(log, patched_, room_)) lanes_.replayed = false;
    window_ = Window(patched_);
  }

  /// The opener follows the chains of undo logs once before it replays any redo log.
  void check_undo_unrecovered() {
    Extensions seen;
    Window window(view_);
    for (std::uint64_t lane = 0; lane < descriptor_.lane_count; ++lane)
      read_log(window, descriptor_, LogKind::undo, at(lane, undo_at), seen, findings_);
  }

  const PoolView& view_;
  const Descriptor& descriptor_;
  PatchedView& patched_;
  Findings& findings_;
  Window window_;
  Lanes lanes_;
  Offset room_ = max_replayed_bytes;
};

} // namespace

Lanes read_lanes(const PoolView& view, const Descriptor& descriptor, PatchedView& patched,
                 Findings& findings) {
  return LaneReader(view, descriptor, patched, findings).read();
}

} // namespace nearfar::inspect
