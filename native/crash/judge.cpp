#include "crash/judge.hpp"

#include <algorithm>
#include <utility>

namespace nearfar::crash {

using storelog::EventKind;
using storelog::line_bytes;

namespace {

constexpr std::uint64_t rounded(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

/// Numbers of events wrap around; those that are compared lie close to each other.
bool is_later(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }

constexpr std::uint8_t all_bytes = 0xF; ///< of a word

/// The parts of an entry for a page: the one thread that stores to it, from 1, or several.
constexpr std::uint8_t is_touched = 1;
constexpr unsigned several_threads = 127;
std::uint8_t of_thread(unsigned thread) { return static_cast<std::uint8_t>(thread << 1); }

/// Those bytes of a word of so many bytes that lie in [address, end), a bit for each.
std::uint8_t bytes_of(std::uint64_t word, std::uint64_t word_bytes, std::uint64_t address,
                      std::uint64_t end) {
  const std::uint64_t start = word * word_bytes;
  const std::uint64_t from = std::max(address, start) - start;
  const std::uint64_t to = std::min(end - start, word_bytes);
  return static_cast<std::uint8_t>((1u << to) - (1u << from));
}

} // namespace

std::size_t Judge::memory_bytes(std::uint64_t pool_bytes) {
  const std::uint64_t words = pool_bytes / word_bytes + 1;
  return rounded(sizeof(Head)) + rounded(max_threads * sizeof(Thread)) +
         rounded(max_findings * sizeof(JudgedFinding)) + rounded(max_notes * sizeof(Note)) +
         rounded(pool_bytes / page_bytes + 1) + rounded(words * sizeof(Word));
}

Judge::Judge(void* memory, std::uint64_t pool_bytes, Observed observed)
    : pool_bytes_(pool_bytes), observed_(observed) {
  auto* at = static_cast<char*>(memory);
  const auto section = [&](std::uint64_t bytes) { return std::exchange(at, at + rounded(bytes)); };
  head_ = reinterpret_cast<Head*>(section(sizeof(Head)));
  threads_ = reinterpret_cast<Thread*>(section(max_threads * sizeof(Thread)));
  findings_ = reinterpret_cast<JudgedFinding*>(section(max_findings * sizeof(JudgedFinding)));
  notes_ = reinterpret_cast<Note*>(section(max_notes * sizeof(Note)));
  touched_ = reinterpret_cast<std::uint8_t*>(section(pool_bytes / page_bytes + 1));
  words_ = reinterpret_cast<Word*>(at);
}

/// Calls visit(word, mask of its bytes), and remembers that these words have a state.
template <class Visit>
void Judge::for_words(std::uint64_t address, std::uint64_t bytes, const Visit& visit) {
  if (bytes == 0) return;
  const std::uint64_t end = address + bytes;
  for (std::uint64_t page = address / page_bytes; page * page_bytes < end; ++page)
    touched_[page] |= is_touched;
  for (std::uint64_t word = address / word_bytes; word * word_bytes < end; ++word)
    visit(words_[word], bytes_of(word, word_bytes, address, end));
}

/// Calls visit(word) for those that have a state. The others are durable.
template <class Visit>
void Judge::for_touched_words(std::uint64_t address, std::uint64_t bytes, const Visit& visit) {
  const std::uint64_t end = std::min(address + bytes, pool_bytes_);
  for (std::uint64_t at = address; at < end;) {
    const std::uint64_t page_end = std::min((at / page_bytes + 1) * page_bytes, end);
    if (touched_[at / page_bytes] != 0)
      for (std::uint64_t word = at / word_bytes; word * word_bytes < page_end; ++word)
        visit(words_[word]);
    at = page_end;
  }
}

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
  if (!event.of_library && thread.active && !has_all(thread, event.address, event.bytes)) {
    for_words(event.address, event.bytes, [&](Word& word, std::uint8_t) {
      if (word.is_new) set_logged(word, thread, all_bytes);
    });
    if (!has_all(thread, event.address, event.bytes))
      note(thread.unlogged, event.address, event.bytes, event.site);
  }
  std::uint32_t freed_by = no_site;
  const bool persists = non_temporal && !event.of_library && thread.active;
  for_words(event.address, event.bytes, [&](Word& word, std::uint8_t mask) {
    if (word.freed && !event.of_library) {
      freed_by = word.site;
      return;
    }
    word.freed = false;
    word.site = event.site;
    word.sequence = head_->sequence;
    word.thread = event.thread;
    word.state = non_temporal ? State::awaiting : State::dirty;
    word.reported = word.flushed_by_other = false;
    if (persists) set_flushed(word, thread, mask);
  });
  if (observed_ == Observed::changes) remember_thread(event);
  if (event.of_library) use_again(event.address + event.bytes);
  if (freed_by != no_site) add(Rule::freed_store, event.site, freed_by, event.address, event.bytes);
  if (non_temporal) note(thread.awaiting, event.address, event.bytes, event.site);
}

/// The allocator writes what lies before an object that it gives out: what follows is not free any
/// longer.
void Judge::use_again(std::uint64_t address) {
  for (std::uint64_t word = address / word_bytes;
       word < pool_bytes_ / word_bytes && touched_[word * word_bytes / page_bytes] != 0 &&
       words_[word].freed;
       ++word)
    words_[word].freed = false;
}

void Judge::remember_thread(const JudgedEvent& store) {
  const unsigned thread = 1u + store.thread % (several_threads - 1);
  const std::uint64_t end = store.address + store.bytes;
  for (std::uint64_t page = store.address / page_bytes; page * page_bytes < end; ++page) {
    const unsigned before = touched_[page] >> 1;
    if (before == thread || before == several_threads) continue;
    touched_[page] = of_thread(before == 0 ? thread : several_threads) | is_touched;
  }
}

/// Whether a thread can have stored there what was there before, unseen.
bool Judge::may_miss_stores(std::uint64_t address, std::uint64_t bytes) const {
  if (observed_ == Observed::all) return false;
  for (std::uint64_t page = address / page_bytes; page * page_bytes < address + bytes; ++page)
    if (touched_[page] >> 1 == several_threads) return true;
  return false;
}

void Judge::flush(const JudgedEvent& event) {
  ++head_->sequence;
  Thread& thread = threads_[event.thread];
  const std::uint64_t from = event.address / line_bytes * line_bytes;
  const std::uint64_t end = event.address + event.bytes;
  const std::uint64_t bytes = (end + line_bytes - 1) / line_bytes * line_bytes - from;
  bool dirty = false, awaiting = false, freed = false, was_others = false;
  for_touched_words(from, bytes, [&](Word& word) {
    awaiting = awaiting || word.state == State::awaiting;
    freed = freed || word.freed;
    if (word.flushed_by_other && (word.thread == event.thread || word.thread == any_thread)) {
      was_others = true;
      word.flushed_by_other = false;
    }
    if (word.state != State::dirty) return;
    dirty = true;
    word.state = State::awaiting;
    word.sequence = head_->sequence;
    word.flushed_by_other = word.thread != event.thread;
  });
  if (dirty || awaiting) note(thread.awaiting, from, bytes, event.site);
  if (event.of_library) return;
  // A thread does not know that another has flushed what it stored; a store to a freed object was
  // reported, and left no state.
  if (!dirty && !was_others && !freed && !may_miss_stores(from, bytes))
    add(awaiting ? Rule::repeated_flush : Rule::needless_flush, event.site, no_site, event.address,
        event.bytes);
  if (!thread.active) return;
  for_words(event.address, event.bytes,
            [&](Word& word, std::uint8_t mask) { set_flushed(word, thread, mask); });
}

void Judge::fence(Thread& thread) {
  drain(thread.awaiting, [&](const Note& flushed) {
    for_touched_words(flushed.address, flushed.bytes, [&](Word& word) {
      if (word.state == State::awaiting && !is_later(word.sequence, flushed.sequence))
        word.state = State::durable;
    });
  });
}

bool Judge::has_all(const Thread& thread, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = address + bytes;
  for (std::uint64_t number = address / word_bytes; number * word_bytes < end; ++number) {
    const std::uint8_t mask = bytes_of(number, word_bytes, address, end);
    const Word& word = words_[number];
    if (word.transaction != thread.transaction || (word.logged & mask) != mask) return false;
  }
  return true;
}

void Judge::log(const JudgedEvent& event) {
  Thread& thread = threads_[event.thread];
  if (event.bytes == 0) return;
  for_touched_words(event.address, event.bytes, [&](Word& word) { word.freed = false; });
  if (!thread.active) return;
  if (!event.of_library && has_all(thread, event.address, event.bytes))
    add(Rule::repeated_log, event.site, no_site, event.address, event.bytes);
  for_words(event.address, event.bytes,
            [&](Word& word, std::uint8_t mask) { set_logged(word, thread, mask); });
  note(thread.calls, event.address, event.bytes, event.site);
}

/// The word is one of the thread's transaction, which may have logged or flushed nothing of it yet.
void Judge::join(Word& word, const Thread& thread) {
  if (word.transaction != thread.transaction) word.logged = word.flushed = 0;
  word.transaction = thread.transaction;
}

void Judge::set_logged(Word& word, const Thread& thread, std::uint8_t bytes) {
  join(word, thread);
  word.logged = (word.logged | bytes) & all_bytes;
  word.is_new = false;
}

void Judge::set_flushed(Word& word, const Thread& thread, std::uint8_t bytes) {
  join(word, thread);
  word.flushed = (word.flushed | bytes) & all_bytes;
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
  drain(thread.calls, [](const Note&) {});
  drain(thread.freed, [&](const Note& object) {
    if (committed) return;
    for_touched_words(object.address, object.bytes, [](Word& word) { word.freed = false; });
  });
  drain(thread.made, [&](const Note& object) {
    for_touched_words(object.address, object.bytes, [](Word& word) { word.is_new = false; });
  });
  thread.active = false;
}

/// Reports a store that was not logged before it was made.
void Judge::judge_store(const Thread& thread, const Note& store) {
  bool all = true, some = false, flushed = true;
  for_words(store.address, store.bytes, [&](const Word& word, std::uint8_t mask) {
    const bool own = word.transaction == thread.transaction;
    all = all && own && (word.logged & mask) == mask;
    some = some || (own && (word.logged & mask) != 0);
    flushed = flushed && own && (word.flushed & mask) == mask;
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
  for_words(store.address, store.bytes, [&](Word& word, std::uint8_t) {
    if (word.site == store.site) word.reported = true;
  });
}

void Judge::take(Use use, const JudgedEvent& event) {
  Thread& thread = threads_[event.thread];
  switch (use) {
  case Use::allocated:
    for_words(event.address, event.bytes, [](Word& word, std::uint8_t) {
      word.freed = word.never_durable = false;
      word.is_new = true;
    });
    note(thread.made, event.address, event.bytes, event.site);
    return;
  case Use::freed:
    for_touched_words(event.address, event.bytes, [&](Word& word) {
      word.freed = true;
      word.site = event.site;
      word.state = State::durable;
    });
    if (thread.active) note(thread.freed, event.address, event.bytes, event.site);
    return;
  case Use::never_durable:
    for_words(event.address, event.bytes,
              [](Word& word, std::uint8_t) { word.never_durable = true; });
  }
}

void Judge::forget() {
  head_->findings = 0;
  head_->events = head_->stores = 0;
  for (std::uint32_t i = 0; i < head_->threads; ++i)
    drain(threads_[i].awaiting, [](const Note&) {});
  for_touched_words(0, pool_bytes_, [](Word& word) { word = {}; });
}

/// A transaction that did not end would have flushed it.
bool Judge::awaits_commit(const Word& word) const {
  if (word.logged == 0) return false;
  for (std::uint32_t i = 0; i < head_->threads; ++i)
    if (threads_[i].left_open && threads_[i].transaction == word.transaction) return true;
  return false;
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
  const Word* first = nullptr; // of a store
  const Word* last = nullptr;
  const auto add_store = [&] {
    if (first == nullptr) return;
    const auto address = static_cast<std::uint64_t>(first - words_) * word_bytes;
    const auto bytes =
        static_cast<std::uint32_t>(word_bytes) * static_cast<std::uint32_t>(last + 1 - first);
    if (first->state == State::dirty)
      return add(Rule::unflushed, first->site, no_site, address, bytes);
    const std::uint32_t flush = flush_of(first->sequence);
    // A non-temporal store awaits a fence by itself.
    add(Rule::unfenced, first->site, flush == first->site ? no_site : flush, address, bytes);
  };
  for_touched_words(0, pool_bytes_, [&](const Word& word) {
    if (word.state == State::durable || word.reported || word.freed || word.never_durable ||
        awaits_commit(word))
      return;
    const bool same = first != nullptr && last == &word - 1 && last->state == word.state &&
                      last->site == word.site && last->sequence == word.sequence;
    if (!same) {
      add_store();
      first = &word;
    }
    last = &word;
  });
  add_store();
}

} // namespace nearfar::crash
