// Keeps every event that threads report about one pool.
//
// Purpose        the log that the crash explorer reads, in memory; log_file.hpp puts it on disk.
// Thread safety  record() may be called by several threads; the order kept is that of the calls.
//                Everything else only while no thread reports.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "storelog/event.hpp"
#include "storelog/storelog.hpp"

namespace nearfar::storelog {

/// Recorded events of one pool.
struct Log {
  std::size_t pool_bytes = 0;
  std::vector<std::byte> image; ///< the pool, all of it durable, before the first event
  std::vector<Event> events;
  std::vector<std::byte> data; ///< bytes that stores left behind, by Event::data
};

/// A call that a mutation removes: all events of this kind that the line of `site` reports, in
/// files whose path ends with site.file().
struct Suppressed {
  EventKind kind = EventKind::flush;
  Site site;
};

class Recorder final : public Listener {
public:
  /// Whether the log gets a copy of the pool.
  enum class Image : bool { leave_out, keep };

  /// Records events in [pool, pool + bytes); stores and flushes elsewhere are ignored, and ranges
  /// that exceed it are cut. Copies the pool as it is now, all of which is assumed to be durable.
  /// If only events are required, the copy can be left out.
  Recorder(const void* pool, std::size_t bytes, Image image = Image::keep);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Suppresses one call from now on, or none.
  void suppress(std::optional<Suppressed> call) { suppressed_ = call; }

  bool record(EventKind kind, const void* at, std::size_t bytes, Site site) override;

  const Log& log() const { return log_; }
  /// Forgets events, and assumes the current contents of the pool to be durable. Keeps its memory.
  void restart();

private:
  std::uint16_t thread_number();

  const std::byte* pool_;
  Image image_;
  std::optional<Suppressed> suppressed_;
  std::mutex mutex_;
  std::vector<std::uint64_t> threads_; ///< identities, in order of appearance
  Log log_;
};

/// Attaches a listener to this thread for a scope, and then restores the previous one.
class Attached {
public:
  explicit Attached(Listener* listener) : before_(thread_state.listener) {
    thread_state.listener = listener;
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() { thread_state.listener = before_; }

private:
  Listener* before_;
};

} // namespace nearfar::storelog
