#include "crash/omissions.hpp"

#include <algorithm>
#include <set>

#include "crash/library.hpp"

namespace nearfar::crash {

using storelog::Event;
using storelog::EventKind;
using storelog::Log;

namespace {

bool covers(const Event& event, std::uint64_t address, std::size_t bytes) {
  return event.address < address + bytes && address < event.address + event.bytes;
}

bool covers_line(const Event& event, std::uint64_t address) {
  const std::uint64_t line = address / line_bytes;
  return event.bytes > 0 && event.address / line_bytes <= line &&
         (event.address + event.bytes - 1) / line_bytes >= line;
}

/// Whether the thread of event `from` makes a fence after it.
bool fenced(const Log& log, std::size_t from) {
  return std::any_of(log.events.begin() + static_cast<std::ptrdiff_t>(from), log.events.end(),
                     [thread = log.events[from].thread](const Event& event) {
                       return event.kind == EventKind::fence && event.thread == thread;
                     });
}

/// Events [first, last) of a log. In a log with transactions: the transaction around an event, or
/// nothing if the event is in none. In others: the operation around it, or the whole log if the
/// program has no operations.
struct Span {
  std::size_t first = 0;
  std::size_t last = 0;
};

bool has_transactions(const Log& log) {
  return std::any_of(log.events.begin(), log.events.end(),
                     [](const Event& event) { return event.kind == EventKind::tx_begin; });
}

/// The span around event `at`; where that is the end of the log, the span before it.
Span span_around(const Log& log, std::size_t at) {
  const std::vector<Event>& events = log.events;
  at = std::min(at, events.size());
  const bool transactions = has_transactions(log);
  const std::uint16_t thread =
      events.empty() ? std::uint16_t{0} : events[std::min(at, events.size() - 1)].thread;
  const auto is = [&](std::size_t i, EventKind transaction, EventKind operation) {
    return transactions ? events[i].kind == transaction && events[i].thread == thread
                        : events[i].kind == operation;
  };
  Span span{at, at};
  while (span.first > 0 && !is(span.first - 1, EventKind::tx_begin, EventKind::begin)) {
    if (transactions && is(span.first - 1, EventKind::tx_end, EventKind::end)) return {at, at};
    --span.first;
  }
  if (transactions && span.first == 0) return {at, at};
  while (span.last < events.size() && !is(span.last, EventKind::tx_end, EventKind::end))
    ++span.last;
  return span;
}

/// Whether any operation logs some of these bytes: then they are data. The stores that write a log
/// itself are not logged.
bool ever_logged(const Log& log, const Event& store) {
  return std::any_of(log.events.begin(), log.events.end(), [&](const Event& event) {
    return event.kind == EventKind::log && covers(event, store.address, store.bytes);
  });
}

} // namespace

bool flushed(const Log& log, std::size_t from, std::size_t to, std::uint64_t address) {
  for (std::size_t i = from; i < to && i < log.events.size(); ++i) {
    if (log.events[i].kind == EventKind::fence && log.events[i].thread == log.events[from].thread)
      return false;
    if (log.events[i].kind == EventKind::flush && log.events[i].host == log.events[from].host &&
        covers_line(log.events[i], address))
      return true;
  }
  return false;
}

Missing missing_flush(const Log& log, std::size_t from, std::uint64_t address) {
  const Event& store = log.events[from];
  bool after_fence = false; // of the store's thread
  for (std::size_t i = from; i < log.events.size(); ++i) {
    const Event& event = log.events[i];
    after_fence |= event.kind == EventKind::fence && event.thread == store.thread;
    if (event.kind != EventKind::flush || event.host != store.host || !covers_line(event, address))
      continue;
    const bool by_another = event.thread != store.thread && fenced(log, i);
    return after_fence || by_another ? Missing::late_flush : Missing::fence;
  }
  return Missing::flush;
}

Logged logged(const Log& log, std::size_t at, std::uint64_t address, std::size_t bytes) {
  Logged result;
  const Span span = span_around(log, at);
  for (std::size_t i = span.first; i < span.last; ++i) {
    if (log.events[i].kind != EventKind::log) continue;
    result.anything = true;
    if (covers(log.events[i], address, bytes)) (i < at ? result.before : result.after) = true;
  }
  return result;
}

Copy copy_around(const Log& log, std::size_t at) {
  const std::vector<Event>& events = log.events;
  const auto is_part = [&](std::size_t i) {
    return stores(events[i]) && events[i].site == events[at].site &&
           events[i].thread == events[at].thread;
  };
  Copy copy{at, at + 1, 0};
  while (copy.first > 0 && is_part(copy.first - 1))
    --copy.first;
  while (copy.last < events.size() && is_part(copy.last))
    ++copy.last;
  std::set<std::uint64_t> lines;
  for (std::size_t i = copy.first; i < copy.last; ++i)
    for (std::uint64_t line = events[i].address / line_bytes;
         line * line_bytes < events[i].address + events[i].bytes; ++line)
      lines.insert(line);
  copy.lines = lines.size();
  return copy;
}

bool uses_logs(const Log& log) {
  return std::any_of(log.events.begin(), log.events.end(),
                     [](const Event& event) { return event.kind == EventKind::log; });
}

Missing left_out(const Log& log, std::size_t at) {
  const Event& event = log.events[at];
  if (of_library(event.site) || !uses_logs(log)) return Missing::logic;
  const Logged range = logged(log, at, event.address, event.bytes);
  if (!range.anything || range.before || !ever_logged(log, event)) return Missing::logic;
  return range.after ? Missing::late_log : Missing::log;
}

LeftOut first_left_out(const Log& log, std::size_t at) {
  if (!uses_logs(log)) return {};
  const Span span = span_around(log, at);
  for (std::size_t i = span.first; i < span.last; ++i)
    if (stores(log.events[i]))
      if (const Missing missing = left_out(log, i); missing != Missing::logic)
        return {&log.events[i], missing};
  return {};
}

} // namespace nearfar::crash
