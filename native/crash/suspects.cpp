#include "crash/suspects.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "crash/hash.hpp"
#include "crash/library.hpp"
#include "crash/ranges.hpp"

namespace nearfar::crash {

using storelog::Event;
using storelog::EventKind;
using storelog::line_bytes;
using storelog::Log;

namespace {

/// In the order of the batches: up to `not_logged` the first one.
enum Kind : std::uint8_t { never_durable, not_logged, overdue, long_overdue, unordered };

std::uint64_t end_of(const Event& event) { return event.address + event.bytes; }

class Search {
public:
  explicit Search(const Log& log) : log_(log) {
    for (const Event& event : log.events) {
      if (event.kind == EventKind::log) ever_logged_.add(event.address, end_of(event));
      transactions_ = transactions_ || event.kind == EventKind::tx_begin;
    }
  }

  void run() {
    const auto events = static_cast<std::uint32_t>(log_.events.size());
    for (std::uint32_t number = 0; number < events; ++number)
      pass(number);
    for (const auto& [line, stores] : dirty_)
      for (const std::uint32_t store : stores)
        add(never_durable, store, events);
    for (const auto& [thread, stores] : awaiting_)
      for (const auto& [store, line] : stores)
        add(never_durable, store, events);
  }

  std::vector<std::vector<Suspect>> batches() {
    std::vector<std::vector<Suspect>> batches(4);
    for (auto& [place, all] : found_) {
      std::stable_sort(all.begin(), all.end(),
                       [](const Suspect& a, const Suspect& b) { return a.store < b.store; });
      const bool for_good = place.first <= not_logged;
      batches[for_good ? 0 : 1].push_back(all.front());
      if (all.size() > 1) batches[2].push_back(all.back());
      if (all.size() > 2) batches[3].push_back(all[1]);
      if (all.size() > 3) batches[3].push_back(all[all.size() / 2]);
    }
    for (std::vector<Suspect>& batch : batches)
      std::stable_sort(batch.begin(), batch.end(),
                       [](const Suspect& a, const Suspect& b) { return a.after < b.after; });
    return batches;
  }

private:
  /// What a transaction, or an operation, logs and stores.
  struct Span {
    bool active = false;
    bool logs = false;
    Ranges logged;
    std::vector<std::uint32_t> stores; ///< that were not logged before
  };

  void add(Kind kind, std::uint32_t store, std::uint32_t after) {
    const std::uint64_t calls = hash_calls(in_program(log_.events[store].site));
    found_[{kind, calls}].push_back({store, after, kind == not_logged});
  }

  void pass(std::uint32_t number) {
    const Event& event = log_.events[number];
    switch (event.kind) {
    case EventKind::store:
    case EventKind::nt_store:
      if (!of_library(event.site)) store(number);
      break;
    case EventKind::flush: flush(event); break;
    case EventKind::fence: fence(number); break;
    case EventKind::log:
      span(event).logs = true;
      span(event).logged.add(event.address, end_of(event));
      break;
    case EventKind::begin:
    case EventKind::tx_begin:
      if ((event.kind == EventKind::tx_begin) == transactions_)
        span(event) = Span{true, false, {}, {}};
      break;
    case EventKind::end:
    case EventKind::tx_end:
      if ((event.kind == EventKind::tx_end) == transactions_) end(span(event));
      break;
    case EventKind::load: break;
    }
  }

  void store(std::uint32_t number) {
    const Event& event = log_.events[number];
    const std::uint64_t line = event.address / line_bytes;
    auto& flushed = unfenced_[event.thread];
    std::erase_if(flushed, [&](const auto& one) {
      if (one.second == line) return false;
      add(unordered, one.first, number);
      return true;
    });
    if (event.kind == EventKind::nt_store)
      await(event.thread, number, line);
    else
      for (std::uint64_t at = line; at * line_bytes < end_of(event); ++at)
        dirty_[at].push_back(number);
    if (event.kind == EventKind::store) fresh_.push_back({number, line});
    Span& around = span(event);
    if (around.active && ever_logged_.has_some(event.address, end_of(event)) &&
        !around.logged.has_some(event.address, end_of(event)))
      around.stores.push_back(number);
  }

  void flush(const Event& event) {
    for (std::uint64_t line = event.address / line_bytes; line * line_bytes < end_of(event);
         ++line) {
      const auto known = dirty_.find(line);
      if (known == dirty_.end()) continue;
      for (const std::uint32_t store : known->second) {
        if (const auto first = overdue_.find(store); first != overdue_.end()) {
          if (first->second != fence_) add(long_overdue, store, fence_);
          overdue_.erase(first);
        }
        await(event.thread, store, line);
      }
      dirty_.erase(known);
    }
  }

  void await(std::uint16_t thread, std::uint32_t store, std::uint64_t line) {
    awaiting_[thread].emplace_back(store, line);
    unfenced_[thread].emplace_back(store, line);
  }

  void fence(std::uint32_t number) {
    const std::uint16_t thread = log_.events[number].thread;
    awaiting_[thread].clear();
    unfenced_[thread].clear();
    fence_ = number;
    for (const auto& [store, line] : std::exchange(fresh_, {}))
      if (const auto known = dirty_.find(line);
          known != dirty_.end() &&
          std::find(known->second.rbegin(), known->second.rend(), store) != known->second.rend()) {
        add(overdue, store, number);
        overdue_.emplace(store, number);
      }
  }

  void end(Span& span) {
    if (span.logs)
      for (const std::uint32_t store : span.stores)
        add(not_logged, store, store);
    span = {};
  }

  Span& span(const Event& event) { return spans_[transactions_ ? event.thread : 0]; }

  const Log& log_;
  Ranges ever_logged_;
  bool transactions_ = false;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> dirty_; ///< stores by line
  /// By thread: stores that a fence will make durable; unfenced_: those after which the thread has
  /// not stored to another line.
  std::unordered_map<std::uint16_t, std::vector<std::pair<std::uint32_t, std::uint64_t>>> awaiting_,
      unfenced_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> fresh_; ///< since the last fence, with lines
  std::unordered_map<std::uint32_t, std::uint32_t> overdue_;   ///< stores, and the first fence
  std::uint32_t fence_ = 0;                                    ///< the last one, of any thread
  std::unordered_map<std::uint16_t, Span> spans_;
  std::map<std::pair<Kind, std::uint64_t>, std::vector<Suspect>> found_; ///< by place and calls
};

} // namespace

std::vector<std::vector<Suspect>> list_suspects(const Log& log) {
  Search search(log);
  search.run();
  return search.batches();
}

} // namespace nearfar::crash
