#include "crash/turns.hpp"

#include <algorithm>
#include <unordered_map>

#include "crash/hash.hpp"
#include "crash/library.hpp"

namespace nearfar::crash {

using storelog::Event;
using storelog::EventKind;
using storelog::line_bytes;

namespace {

/// A turn, and how many turns of the same place came before it.
struct Candidate {
  Turn turn;
  std::size_t repeat = 0;
};

/// Walks through the events of all threads.
class Search {
public:
  explicit Search(const storelog::Log& log) : log_(log) {}

  std::vector<Candidate> run() {
    for (const Event& event : log_.events) {
      Thread& thread = threads_[event.thread];
      if (event.kind == EventKind::begin) thread.has_begun = true;
      if (!thread.has_begun || event.thread == 0) continue;
      if (stores(event) && !of_library(event.site))
        each_line(event, [&](std::uint64_t line) { thread.dirty[line] = &event; });
      if (event.kind == EventKind::flush) flush(event, thread);
    }
    return std::move(found_);
  }

private:
  struct Thread {
    bool has_begun = false;
    std::uint64_t flushes = 0;
    std::unordered_map<std::uint64_t, const Event*> dirty;  ///< last store, by line
    std::unordered_map<std::uint64_t, std::size_t> repeats; ///< by place
  };

  template <class Visit>
  static void each_line(const Event& event, Visit visit) {
    for (std::uint64_t line = event.address / line_bytes;
         line * line_bytes < event.address + event.bytes; ++line)
      visit(line);
  }

  void flush(const Event& event, Thread& thread) {
    ++thread.flushes;
    const Event* last = nullptr;
    each_line(event, [&](std::uint64_t line) {
      const auto store = thread.dirty.find(line);
      if (store == thread.dirty.end()) return;
      last = std::max(last, store->second); // both lie in the log, in program order
      thread.dirty.erase(store);
    });
    if (last == nullptr) return;
    const std::size_t repeat = thread.repeats[hash_place(last->site)]++;
    found_.push_back({{event.thread, thread.flushes, last->site}, repeat});
  }

  const storelog::Log& log_;
  std::unordered_map<std::uint16_t, Thread> threads_;
  std::vector<Candidate> found_;
};

} // namespace

std::vector<Turn> list_turns(const storelog::Log& log) {
  std::vector<Candidate> all = Search(log).run();
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.repeat < b.repeat; });
  std::vector<Turn> turns;
  for (const Candidate& one : all)
    turns.push_back(one.turn);
  return turns;
}

std::size_t first_of_others(const storelog::Log& log, std::uint16_t held) {
  const auto first = std::find_if(log.events.begin(), log.events.end(), [held](const Event& event) {
    return event.kind == EventKind::begin && event.thread != 0 && event.thread != held;
  });
  return static_cast<std::size_t>(first - log.events.begin());
}

} // namespace nearfar::crash
