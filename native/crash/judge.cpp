#include "crash/judge.hpp"

#include <algorithm>
#include <utility>

namespace nearfar::crash {

using os::page_bytes;
using storelog::EventKind;
using storelog::line_bytes;

namespace {

/// Numbers of events wrap around; those that are compared lie close to each other.
bool is_later(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }

/// Of the threads that store to a page, which are counted from 1.
constexpr std::uint8_t several_threads = 255;

Words with(Words words, Words more) { return static_cast<Words>(words | more); }
Words without(Words words, Words less) { return static_cast<Words>(words & ~less); }
Words bit(unsigned word) { return static_cast<Words>(1u << word); }

} // namespace

std::size_t Judge::memory_bytes(std::uint64_t pool_bytes) {
  return Sections::bytes<Head>(1) + Sections::bytes<Thread>(max_threads) +
         Sections::bytes<JudgedFinding>(max_findings) + Sections::bytes<Note>(max_notes) +
         Sections::bytes<std::uint8_t>(pool_bytes / page_bytes + 1) +
         LineStates::memory_bytes(pool_bytes);
}

Judge::Judge(void* memory, std::uint64_t pool_bytes, Observed observed)
    : Judge(Sections(memory), pool_bytes, observed) {}

Judge::Judge(Sections sections, std::uint64_t pool_bytes, Observed observed)
    : pool_bytes_(pool_bytes), head_(sections.next<Head>(1)),
      threads_(sections.next<Thread>(max_threads)),
      findings_(sections.next<JudgedFinding>(max_findings)), notes_(sections.next<Note>(max_notes)),
      observed_(observed),
      threads_of_pages_(sections.next<std::uint8_t>(pool_bytes / page_bytes + 1)),
      lines_(sections.next<std::byte>(LineStates::memory_bytes(pool_bytes)), pool_bytes) {}

void Judge::note(std::uint32_t& list, std::uint64_t address, std::uint64_t bytes,
                 std::uint32_t site) {
  std::uint32_t number = head_->unused_note;
  if (number != 0) {
    head_->unused_note = notes_[number].next;
  } else if (head_->notes + 1 < max_notes) {
    number = ++head_->notes;
  } else {
    head_->full = true;
    return;
  }
  notes_[number] = {list, site, head_->sequence, static_cast<std::uint32_t>(bytes), address};
  list = number;
}

/// Empties a list; calls visit(note) from the newest on.
template <class Visit>
void Judge::drain(std::uint32_t& list, const Visit& visit) {
  while (list != 0) {
    Note& entry = notes_[list];
    visit(std::as_const(entry));
    const std::uint32_t next = std::exchange(entry.next, head_->unused_note);
    head_->unused_note = std::exchange(list, next);
  }
}

void Judge::add(Rule rule, std::uint32_t site, std::uint32_t other, std::uint64_t address,
                std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < head_->findings; ++i)
    if (findings_[i].rule == rule && findings_[i].site == site) {
      ++findings_[i].count;
      return;
    }
  if (head_->findings == max_findings) {
    head_->full = true;
    return;
  }
  findings_[head_->findings++] = {rule, site, other, bytes, address, 1};
}

void Judge::take(const JudgedEvent& event) {
  ++head_->events;
  Thread& thread = threads_[event.thread];
  if (event.thread != any_thread)
    head_->threads = std::max<std::uint32_t>(head_->threads, event.thread + 1u);
  switch (event.kind) {
  case EventKind::store: return store(event, false);
  case EventKind::nt_store: return store(event, true);
  case EventKind::flush: return flush(event);
  case EventKind::fence: return fence(thread);
  case EventKind::log: return log(event);
  case EventKind::tx_begin: return begin(thread, event.site);
  case EventKind::tx_end: return end(thread, event.address == 0);
  case EventKind::begin:
  case EventKind::end:
  case EventKind::load: break;
  }
}

void Judge::store(const JudgedEvent& event, bool non_temporal) {
  ++head_->stores;
  ++head_->sequence;
  Thread& thread = threads_[event.thread];
  std::uint32_t freed_by = no_site;
  const bool persists = non_temporal && !event.of_library && thread.active;
  lines_.for_lines(event.address, event.bytes, [&](LineState& line, const LinePart& part) {
    Words stored = part.words;
    if (event.of_library) line.freed = without(line.freed, stored);
    const Words freed = stored & line.freed;
    for_each_word(freed, [&](unsigned word) { freed_by = line.site[word]; });
    stored = without(stored, freed);
    const Words durable = without(stored, line.dirty | line.awaiting);
    line.unchanged =
        event.changes ? without(line.unchanged, stored) : with(line.unchanged, durable);
    line.set_store(stored, event.site, head_->sequence, event.thread);
    line.dirty = non_temporal ? without(line.dirty, stored) : with(line.dirty, stored);
    line.awaiting = non_temporal ? with(line.awaiting, stored) : without(line.awaiting, stored);
    if (non_temporal) line.newest_awaiting = head_->sequence;
    line.reported = without(line.reported, stored);
    line.flushed_by_other = without(line.flushed_by_other, stored);
    if (persists) own_part(line, thread).flushed |= part.bytes & bytes_of(stored);
  });
  if (observed_ == Observed::changes) remember_thread(event);
  if (event.of_library) use_again(event.address + event.bytes);
  if (freed_by != no_site)
    add(Rule::freed_store, event.site, freed_by, event.address, event.bytes);
  else if (!event.of_library && thread.active)
    note_unlogged(event, thread);
  if (non_temporal) note(thread.awaiting, event.address, event.bytes, event.site);
}

/// Notes a store in a transaction to bytes that it has not logged. What was allocated needs no log.
void Judge::note_unlogged(const JudgedEvent& store, Thread& thread) {
  if (has_all(thread, store.address, store.bytes)) return;
  lines_.for_lines(store.address, store.bytes, [&](LineState& line, LinePart part) {
    part.words &= line.is_new;
    part.bytes = bytes_of(part.words);
    if (part.words != 0) set_logged(line, thread, part);
  });
  if (!has_all(thread, store.address, store.bytes))
    note(thread.unlogged, store.address, store.bytes, store.site);
}

/// The allocator writes what lies before an object that it gives out: what follows is not free any
/// longer.
void Judge::use_again(std::uint64_t address) {
  for (std::uint64_t word = address / word_bytes; word < pool_bytes_ / word_bytes;) {
    LineState* const line = lines_.find(word / words_of_line);
    const unsigned from = word % words_of_line;
    if (line == nullptr) return;
    const auto count =
        static_cast<unsigned>(std::countr_one(static_cast<unsigned>(line->freed) >> from));
    if (count == 0) return;
    line->freed = without(line->freed, static_cast<Words>(((1u << count) - 1) << from));
    if (from + count < words_of_line) return;
    word += count;
  }
}

void Judge::remember_thread(const JudgedEvent& store) {
  const auto thread = static_cast<std::uint8_t>(1 + store.thread % (several_threads - 1));
  const std::uint64_t end = store.address + store.bytes;
  for (std::uint64_t page = store.address / page_bytes; page * page_bytes < end; ++page) {
    std::uint8_t& before = threads_of_pages_[page];
    if (before != thread) before = before == 0 ? thread : several_threads;
  }
}

bool Judge::may_miss_stores(std::uint64_t address, std::uint64_t bytes) const {
  if (observed_ == Observed::all) return false;
  for (std::uint64_t page = address / page_bytes; page * page_bytes < address + bytes; ++page)
    if (threads_of_pages_[page] == several_threads) return true;
  return false;
}

void Judge::flush(const JudgedEvent& event) {
  ++head_->sequence;
  Thread& thread = threads_[event.thread];
  const std::uint64_t from = event.address / line_bytes * line_bytes;
  const std::uint64_t end = event.address + event.bytes;
  const std::uint64_t bytes = (end + line_bytes - 1) / line_bytes * line_bytes - from;
  bool dirty = false, awaiting = false, freed = false, was_others = false;
  lines_.for_known_lines(from, bytes, [&](LineState& line, const LinePart&) {
    awaiting = awaiting || line.awaiting != 0;
    freed = freed || line.freed != 0;
    for_each_word(line.flushed_by_other, [&](unsigned word) {
      if (line.thread[word] != event.thread && line.thread[word] != any_thread) return;
      was_others = true;
      line.flushed_by_other = without(line.flushed_by_other, bit(word));
    });
    if (line.dirty == 0) return;
    dirty = true;
    line.newest_awaiting = head_->sequence;
    for_each_word(line.dirty, [&](unsigned word) {
      line.sequence[word] = head_->sequence;
      if (line.thread[word] != event.thread)
        line.flushed_by_other = with(line.flushed_by_other, bit(word));
    });
    line.awaiting = with(line.awaiting, std::exchange(line.dirty, Words{0}));
  });
  if (dirty || awaiting) note(thread.awaiting, from, bytes, event.site);
  if (event.of_library) return;
  // A thread does not know that another has flushed what it stored; a store to a freed object was
  // reported, and left no state.
  if (!dirty && !was_others && !freed && !may_miss_stores(from, bytes))
    add(awaiting ? Rule::repeated_flush : Rule::needless_flush, event.site, no_site, event.address,
        event.bytes);
  if (!thread.active) return;
  lines_.for_lines(event.address, event.bytes, [&](LineState& line, const LinePart& part) {
    own_part(line, thread).flushed |= part.bytes;
  });
}

void Judge::fence(Thread& thread) {
  thread.fence = head_->fence = head_->sequence;
  drain(thread.awaiting, [&](const Note& flushed) {
    lines_.for_known_lines(flushed.address, flushed.bytes,
                           [&](LineState& line, const LinePart& part) {
                             if (!is_later(line.newest_awaiting, flushed.sequence))
                               line.awaiting = without(line.awaiting, part.words);
                             for_each_word(line.awaiting & part.words, [&](unsigned word) {
                               if (!is_later(line.sequence[word], flushed.sequence))
                                 line.awaiting = without(line.awaiting, bit(word));
                             });
                             if (is_forgettable(line)) lines_.forget(part.line);
                           });
  });
}

bool Judge::is_new(std::uint64_t address) const {
  const LineState* const line = lines_.find(address / line_bytes);
  return line != nullptr && (line->is_new & bit(address % line_bytes / word_bytes)) != 0;
}

bool Judge::is_active(std::uint32_t transaction) const {
  for (std::uint32_t i = 0; i < head_->threads; ++i)
    if (threads_[i].active && threads_[i].transaction == transaction) return true;
  return false;
}

/// What the thread's transaction has logged and flushed of a line.
LineState& Judge::own_part(LineState& line, const Thread& thread) {
  return lines_.add_transaction(line, thread.transaction,
                                [&](std::uint32_t transaction) { return is_active(transaction); });
}

bool Judge::has_all(const Thread& thread, std::uint64_t address, std::uint64_t bytes) const {
  const std::uint64_t end = address + bytes;
  while (address < end) {
    const LinePart part = LinePart::first_of(address, end);
    LineState* const line = lines_.find(part.line);
    if (line == nullptr) return false;
    const LineState* const own = lines_.find_transaction(*line, thread.transaction);
    if (own == nullptr || (own->logged & part.bytes) != part.bytes) return false;
    address = (part.line + 1) * line_bytes;
  }
  return true;
}

void Judge::set_logged(LineState& line, const Thread& thread, const LinePart& part) {
  own_part(line, thread).logged |= part.bytes;
  line.is_new = without(line.is_new, part.words);
}

void Judge::log(const JudgedEvent& event) {
  Thread& thread = threads_[event.thread];
  if (event.bytes == 0) return;
  lines_.for_known_lines(event.address, event.bytes, [&](LineState& line, const LinePart& part) {
    line.freed = without(line.freed, part.words);
  });
  if (!thread.active) return;
  if (!event.of_library && has_all(thread, event.address, event.bytes))
    add(Rule::repeated_log, event.site, no_site, event.address, event.bytes);
  lines_.for_lines(event.address, event.bytes,
                   [&](LineState& line, const LinePart& part) { set_logged(line, thread, part); });
  note(thread.calls, event.address, event.bytes, event.site);
}

/// Whether nothing of the line has an effect on what is judged later: it is durable, and the
/// transactions that logged it have ended.
bool Judge::is_forgettable(const LineState& line) const {
  if ((line.dirty | line.awaiting | line.freed | line.is_new | line.never_durable |
       line.flushed_by_other) != 0)
    return false;
  return line.next == 0 && ((line.logged | line.flushed) == 0 || !is_active(line.transaction));
}

void Judge::forget_durable(const Note& note) {
  lines_.for_known_lines(note.address, note.bytes,
                         [&](const LineState& line, const LinePart& part) {
                           if (is_forgettable(line)) lines_.forget(part.line);
                         });
}

void Judge::begin(Thread& thread, std::uint32_t site) {
  thread.active = true;
  thread.begin = site;
  thread.transaction = ++head_->transactions;
}

void Judge::end(Thread& thread, bool committed) {
  std::uint32_t oldest_first = 0;
  drain(thread.unlogged,
        [&](const Note& store) { note(oldest_first, store.address, store.bytes, store.site); });
  drain(oldest_first, [&](const Note& store) { judge_store(thread, store); });
  thread.active = false;
  drain(thread.freed, [&](const Note& object) {
    if (committed) return;
    lines_.for_known_lines(object.address, object.bytes, [](LineState& line, const LinePart& part) {
      line.freed = without(line.freed, part.words);
    });
  });
  drain(thread.made, [&](const Note& object) {
    set_reachable(object.address, object.bytes);
    forget_durable(object);
  });
  drain(thread.calls, [&](const Note& call) {
    if (!committed) roll_back(thread, call);
    forget_durable(call);
  });
}

/// Something refers to the object: transactions log what they store to it.
void Judge::set_reachable(std::uint64_t address, std::uint64_t bytes) {
  lines_.for_known_lines(address, bytes, [](LineState& line, const LinePart& part) {
    line.is_new = without(line.is_new, part.words);
  });
}

/// What the transaction stored there is gone: the library restores bytes that were logged, and nothing
/// refers to objects that the transaction allocated.
void Judge::roll_back(const Thread& thread, const Note& logged) {
  const auto number = static_cast<std::uint16_t>(&thread - threads_);
  lines_.for_known_lines(logged.address, logged.bytes, [&](LineState& line, const LinePart& part) {
    for_each_word((line.dirty | line.awaiting) & part.words, [&](unsigned word) {
      if (line.thread[word] != number && line.thread[word] != any_thread) return;
      line.dirty = without(line.dirty, bit(word));
      line.awaiting = without(line.awaiting, bit(word));
    });
  });
}

/// Reports a store that was not logged before it was made.
void Judge::judge_store(const Thread& thread, const Note& store) {
  bool all = true, some = false, flushed = true;
  lines_.for_lines(store.address, store.bytes, [&](LineState& line, const LinePart& part) {
    const LineState* const own = lines_.find_transaction(line, thread.transaction);
    const Bytes logged = own == nullptr ? 0 : own->logged & part.bytes;
    all = all && logged == part.bytes;
    some = some || logged != 0;
    flushed = flushed && own != nullptr && (own->flushed & part.bytes) == part.bytes;
  });
  if (flushed) {
    if (!all) add(Rule::unlogged_flush, store.site, no_site, store.address, store.bytes);
    return;
  }
  std::uint32_t call = no_site;
  for (std::uint32_t i = thread.calls; i != 0; i = notes_[i].next)
    if (notes_[i].address < store.address + store.bytes &&
        store.address < notes_[i].address + notes_[i].bytes)
      call = notes_[i].site;
  add(all    ? Rule::late_log
      : some ? Rule::short_log
             : Rule::unlogged,
      store.site, call, store.address, store.bytes);
  lines_.for_lines(store.address, store.bytes, [&](LineState& line, const LinePart& part) {
    for_each_word(part.words, [&](unsigned word) {
      if (line.site[word] == store.site) line.reported = with(line.reported, bit(word));
    });
  });
}

void Judge::take(Use use, const JudgedEvent& event) {
  Thread& thread = threads_[event.thread];
  switch (use) {
  case Use::allocated:
    lines_.for_lines(event.address, event.bytes, [](LineState& line, const LinePart& part) {
      line.freed = without(line.freed, part.words);
      line.never_durable = without(line.never_durable, part.words);
      line.is_new = with(line.is_new, part.words);
    });
    note(thread.made, event.address, event.bytes, event.site);
    return;
  case Use::published: return set_reachable(event.address, event.bytes);
  case Use::of_transaction:
    if (thread.active) note(thread.calls, event.address, event.bytes, event.site);
    return;
  case Use::freed:
    lines_.for_lines(event.address, event.bytes, [&](LineState& line, const LinePart& part) {
      line.freed = with(line.freed, part.words);
      line.dirty = without(line.dirty, part.words);
      line.awaiting = without(line.awaiting, part.words);
      for_each_word(part.words, [&](unsigned word) { line.site[word] = event.site; });
    });
    if (thread.active) note(thread.freed, event.address, event.bytes, event.site);
    return;
  case Use::never_durable:
    lines_.for_lines(event.address, event.bytes, [](LineState& line, const LinePart& part) {
      line.never_durable = with(line.never_durable, part.words);
    });
  }
}

void Judge::forget() {
  head_->findings = 0;
  head_->events = head_->stores = 0;
  for (std::uint32_t i = 0; i < head_->threads; ++i)
    drain(threads_[i].awaiting, [](const Note&) {});
  lines_.forget_all();
}

bool Judge::is_left_open(std::uint32_t transaction) const {
  for (std::uint32_t i = 0; i < head_->threads; ++i)
    if (threads_[i].left_open && threads_[i].transaction == transaction) return true;
  return false;
}

/// What a transaction that did not end would have flushed.
Words Judge::awaiting_commit(const LineState& line) const {
  Words words = 0;
  lines_.for_transactions(line, [&](const LineState& part) {
    if (part.logged != 0 && is_left_open(part.transaction))
      words = with(words, words_of(part.logged));
  });
  return words;
}

/// Whether the thread of a store that is not flushed has made a fence since.
bool Judge::is_overdue(const LineState& line, unsigned word) const {
  const std::uint16_t thread = line.thread[word];
  const std::uint32_t fence = thread == any_thread ? head_->fence : threads_[thread].fence;
  return (line.dirty & bit(word)) != 0 && !is_later(line.sequence[word], fence);
}

void Judge::finish(bool ended) {
  for (std::uint32_t i = 0; i < head_->threads; ++i) {
    if (!threads_[i].active) continue;
    if (ended) add(Rule::unended, threads_[i].begin, no_site, 0, 0);
    end(threads_[i], true);
    threads_[i].left_open = true;
  }
  const auto flush_of = [&](std::uint32_t sequence) {
    for (std::uint32_t i = 0; i < head_->threads; ++i)
      for (std::uint32_t at = threads_[i].awaiting; at != 0; at = notes_[at].next)
        if (notes_[at].sequence == sequence) return notes_[at].site;
    return no_site;
  };
  struct Stored {
    std::uint64_t first = 0, end = 0; ///< words
    Rule rule = Rule::unflushed;
    std::uint32_t site = 0, sequence = 0;
  } store;
  const auto add_store = [&] {
    if (store.first == store.end) return;
    const std::uint64_t address = store.first * word_bytes;
    const auto bytes = static_cast<std::uint32_t>((store.end - store.first) * word_bytes);
    std::uint32_t flush = no_site;
    if (store.rule == Rule::unfenced) flush = flush_of(store.sequence);
    // A non-temporal store awaits a fence by itself.
    add(store.rule, store.site, flush == store.site ? no_site : flush, address, bytes);
  };
  lines_.for_known_lines(0, pool_bytes_, [&](const LineState& line, const LinePart& part) {
    const Words unjudged = line.reported | line.freed | line.never_durable | awaiting_commit(line);
    for_each_word(without(line.dirty | line.awaiting, unjudged), [&](unsigned word) {
      const std::uint64_t number = part.line * words_of_line + word;
      const bool dirty = (line.dirty & bit(word)) != 0;
      const bool unchanged = (line.unchanged & bit(word)) != 0;
      if ((!ended && !is_overdue(line, word)) || (unchanged && !dirty)) return;
      const Rule rule = unchanged ? Rule::unchanged : dirty ? Rule::unflushed : Rule::unfenced;
      if (number != store.end || rule != store.rule || line.site[word] != store.site ||
          line.sequence[word] != store.sequence) {
        add_store();
        store = {number, number, rule, line.site[word], line.sequence[word]};
      }
      store.end = number + 1;
    });
  });
  add_store();
}

} // namespace nearfar::crash
