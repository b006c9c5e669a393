#include "crash/trace.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "os/guard.hpp"

namespace nearfar::crash {

using storelog::Event;
using storelog::EventKind;

namespace {

constexpr std::uint64_t limit_ms = 10'000; ///< CPU time for one operation

/// An operation that may be wrong: it ends as a sentence instead of ending this program.
class Guarded {
public:
  explicit Guarded(Subject& subject) : subject_(subject) {}

  /// Whether it was done; if not, `trace` has the reason.
  bool apply(const Operation& operation, std::size_t number, Trace& trace) {
    operation_ = &operation;
    refused_.reset();
    const os::Guarded ran = guard_.run(
        [](void* context) {
          auto& self = *static_cast<Guarded*>(context);
          const Status done = self.subject_.apply(*self.operation_);
          if (!done) self.refused_ = done.error();
        },
        this);
    char text[sizeof(Error::what) + 80];
    if (ran.ending == os::Ending::crashed) {
      trace.ending = Failure::crashed;
      std::snprintf(text, sizeof text, "operation %zu was killed by signal %d (%s)", number,
                    ran.signal, strsignal(ran.signal));
    } else if (ran.ending == os::Ending::hung) {
      trace.ending = Failure::hung;
      std::snprintf(text, sizeof text, "operation %zu did not end within %llu ms", number,
                    static_cast<unsigned long long>(limit_ms));
    } else if (refused_) {
      trace.ending = Failure::broken;
      std::snprintf(text, sizeof text, "operation %zu failed: %s", number, refused_->what);
    } else {
      return true;
    }
    trace.ended = text;
    return false;
  }

private:
  os::Guard guard_{limit_ms};
  Subject& subject_;
  const Operation* operation_ = nullptr;
  std::optional<Error> refused_;
};

void apply_all(Subject& subject, const std::vector<Operation>& operations, Trace& trace) {
  Guarded guarded(subject);
  Contents model;
  trace.models.push_back(model);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    storelog::begin(i);
    const bool done = guarded.apply(operations[i], i, trace);
    subject.apply_to_model(operations[i], model);
    trace.models.push_back(model);
    if (!trace.ordered) std::sort(trace.models.back().begin(), trace.models.back().end());
    if (!done) return;
    storelog::end(i);
  }
}

Status check_complete(const storelog::Log& log, const Arena& arena) {
  std::vector<std::byte> replayed = log.image;
  for (const Event& event : log.events)
    if (event.kind == EventKind::store || event.kind == EventKind::nt_store)
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
    apply_all(subject, operations, trace);
  }
  if (trace.ending == Failure::none) subject.close(); // else it is in disorder
  trace.log = recorder.log();
  if (Status complete = check_complete(trace.log, arena); !complete) return complete.error();
  return trace;
}

} // namespace nearfar::crash
