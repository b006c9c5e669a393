#include "crash/trace.hpp"

#include <algorithm>
#include <cstring>

namespace nearfar::crash {

using storelog::Event;
using storelog::Kind;

namespace {

Status apply_all(Subject& subject, const std::vector<Operation>& operations, Trace& trace) {
  Contents model;
  trace.models.push_back(model);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    storelog::begin(i);
    if (Status done = subject.apply(operations[i]); !done) return done;
    storelog::end(i);
    subject.apply_to_model(operations[i], model);
    trace.models.push_back(model);
    if (!trace.ordered) std::sort(trace.models.back().begin(), trace.models.back().end());
  }
  return Done{};
}

Status check_complete(const storelog::Log& log, const Arena& arena) {
  std::vector<std::byte> replayed = log.image;
  for (const Event& event : log.events)
    if (event.kind == Kind::store || event.kind == Kind::nt_store)
      std::memcpy(replayed.data() + event.address, log.data.data() + event.data, event.bytes);
  const auto at = std::mismatch(replayed.begin(), replayed.end(), arena.memory()).first;
  if (at == replayed.end()) return Done{};
  return Error::make(Errc::failed_check, "a store to pool offset %zu was not reported",
                     static_cast<std::size_t>(at - replayed.begin()))
      .try_next("report every store to the pool to storelog");
}

} // namespace

Result<Trace> record_trace(Subject& subject, Arena& arena, const std::vector<Operation>& operations,
                           bool ordered, std::optional<storelog::Suppressed> suppressed) {
  std::memset(arena.memory(), 0, arena.bytes());
  if (Status made = subject.create(arena.memory(), arena.bytes()); !made) return made.error();
  storelog::Recorder recorder(arena.memory(), arena.bytes());
  recorder.suppress(suppressed);
  Trace trace;
  trace.ordered = ordered;
  {
    const storelog::Attached attached(&recorder);
    if (Status done = apply_all(subject, operations, trace); !done) return done.error();
  }
  subject.close();
  trace.log = recorder.log();
  if (Status complete = check_complete(trace.log, arena); !complete) return complete.error();
  return trace;
}

} // namespace nearfar::crash
