// Reports of persistent code on its operations: call these next to each store, flush, fence and log
// call.
//
// Purpose        one set of calls serves two readers. Always: counters of fences and lines for
//                each thread, for benchmarks (fences_per_op, lines_per_op). When a Recorder is
//                attached to the thread: every event with its bytes, address, thread and source
//                line, for the crash explorer. Any other Listener may be attached instead.
// Cost           without a recorder, fence() is one increment of a thread-local word and one
//                branch that is always predicted; flush() adds the number of lines; store()
//                and begin() are only the branch.
// These only report: the caller stores, flushes and fences by itself (os/flush.hpp).
//
// Rules for callers, so that findings name the right lines
//   * store(), nt_store(): right AFTER the bytes are in memory; they are copied from there. Report
//     every store to the pool, also those to memory that nothing links yet: the explorer replays
//     the log and refuses a trace whose replay differs from memory. One report per store in program
//     order; a memcpy is one report.
//   * flush(): with the write-back; any range, it counts the lines it touches.
//   * fence(): with the sfence.
//   * if (log(at, bytes)) { write the log record }: BEFORE a range that is snapshotted (undo) or
//     recorded (redo) is overwritten. It is true except in the mutation suite, which removes one
//     log call. Report the stores and flushes by which the log itself is written, too.
//   * begin(n), end(n): around an operation that must be atomic; end is its acknowledgement.
//   * A helper between the algorithm and these must take `Site site = Site::current()` as its last
//     parameter and pass it on; otherwise every finding names the helper.
//
//     inline void persist(void* at, std::size_t bytes, Site site = Site::current()) {
//       storelog::flush(at, bytes, site);
//       for (each line) os::write_back_clwb(line);
//       storelog::fence(site);
//       os::fence();
//     }
//
// Thread safety  counters and the attached listener belong to the calling thread. One recorder may
//                be attached to several threads.
// Linking        thread-local data of the initial-exec model: no call, also in a shared library.
#pragma once

#include "storelog/event.hpp"

namespace nearfar::storelog {

/// Receives every event of the threads that it is attached to (recorder.hpp).
class Listener {
public:
  /// False if a mutation removes this call.
  virtual bool record(EventKind kind, const void* at, std::size_t bytes, Site site) = 0;

protected:
  ~Listener() = default;
};

/// Counts of a thread since it began. Use differences: they are never reset.
struct Counters {
  std::uint64_t fences = 0;
  std::uint64_t lines = 0; ///< written back by a flush or by non-temporal stores

  friend Counters operator-(const Counters& later, const Counters& earlier) {
    return {later.fences - earlier.fences, later.lines - earlier.lines};
  }
};

/// Not for users: state of the inline functions.
struct ThreadState {
  Counters counters;
  Listener* listener = nullptr;
};
[[gnu::tls_model("initial-exec")]] inline thread_local constinit ThreadState thread_state{};

/// Not for users: called only when a listener is attached. False if a mutation removes this call.
inline bool record(EventKind kind, const void* at, std::size_t bytes, Site site) {
  return thread_state.listener->record(kind, at, bytes, site);
}

/// The counters of the calling thread, now.
inline Counters counters() { return thread_state.counters; }

/// Whether this thread is recorded.
inline bool recording() { return __builtin_expect(thread_state.listener != nullptr, 0); }

inline void store(const void* at, std::size_t bytes, Site site = Site::current()) {
  if (recording()) record(EventKind::store, at, bytes, site);
}
inline void nt_store(const void* at, std::size_t bytes, Site site = Site::current()) {
  thread_state.counters.lines += lines_of(at, bytes);
  if (recording()) record(EventKind::nt_store, at, bytes, site);
}
inline void flush(const void* at, std::size_t bytes, Site site = Site::current()) {
  thread_state.counters.lines += lines_of(at, bytes);
  if (recording()) record(EventKind::flush, at, bytes, site);
}
inline void fence(Site site = Site::current()) {
  ++thread_state.counters.fences;
  if (recording()) record(EventKind::fence, nullptr, 0, site);
}
/// Whether the log record must be written: always, unless a mutation removes this call.
[[nodiscard]] inline bool log(const void* at, std::size_t bytes, Site site = Site::current()) {
  return recording() ? record(EventKind::log, at, bytes, site) : true;
}
inline void begin(std::uint64_t operation, Site site = Site::current()) {
  if (recording()) record(EventKind::begin, nullptr, operation, site);
}
inline void end(std::uint64_t operation, Site site = Site::current()) {
  if (recording()) record(EventKind::end, nullptr, operation, site);
}

} // namespace nearfar::storelog
