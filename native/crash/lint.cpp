#include "crash/lint.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "crash/library.hpp"
#include "crash/ranges.hpp"

namespace nearfar::crash {

using storelog::Event;
using storelog::EventKind;
using storelog::line_bytes;
using storelog::Log;
using storelog::Site;

namespace {

constexpr std::uint64_t word_bytes = 4;
constexpr std::size_t words_in_line = line_bytes / word_bytes;

std::uint64_t end_of(const Event& event) { return event.address + event.bytes; }

/// Occurrences, counted by rule and place.
class Findings {
public:
  explicit Findings(const Log& log) : log_(log) {}

  bool has(std::uint32_t number) const { return reported_.contains(number); }
  void add(Rule rule, std::uint32_t number, Site other = {}) {
    const Event& event = log_.events[number];
    reported_.insert(number);
    const auto same = [&](const LintFinding& known) {
      return known.rule == rule && known.site.place() == event.site.place() &&
             std::strcmp(known.site.file(), event.site.file()) == 0;
    };
    auto known = std::find_if(found_.begin(), found_.end(), same);
    if (known == found_.end())
      known = found_.insert(known, {rule, event.site, other, event.address, event.bytes, 0});
    ++known->count;
  }
  std::vector<LintFinding> take() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const LintFinding& a, const LintFinding& b) { return a.rule < b.rule; });
    return std::move(found_);
  }

private:
  const Log& log_;
  std::vector<LintFinding> found_;
  std::unordered_set<std::uint32_t> reported_; ///< numbers of events
};

/// Which stores have reached memory.
class Durability {
public:
  Durability(const Log& log, Findings& findings) : log_(log), findings_(findings) {}

  void store(std::uint32_t number) {
    const Event& event = log_.events[number];
    for_words(event, [&](Word& word) {
      word = {number, number, event.kind == EventKind::nt_store ? State::awaiting : State::dirty};
    });
    if (event.kind == EventKind::nt_store) awaiting_[event.thread].push_back(number);
  }

  void flush(std::uint32_t number) {
    const Event& event = log_.events[number];
    bool dirty = false, awaiting = false;
    for_lines(event, [&](Word& word) {
      awaiting = awaiting || word.state == State::awaiting;
      if (word.state != State::dirty) return;
      dirty = true;
      word.state = State::awaiting;
      word.flush = number;
    });
    if (dirty || awaiting) awaiting_[event.thread].push_back(number);
    if (!dirty && !of_library(event.site))
      findings_.add(awaiting ? Rule::repeated_flush : Rule::needless_flush, number);
  }

  void fence(std::uint16_t thread) {
    for (const std::uint32_t number : std::exchange(awaiting_[thread], {})) {
      const Event& event = log_.events[number];
      const auto settle = [&](Word& word) {
        if (word.state == State::awaiting && word.flush <= number) word.state = State::durable;
      };
      if (event.kind == EventKind::nt_store)
        for_words(event, settle);
      else
        for_lines(event, settle);
    }
  }

  /// Reports stores not durable at the end of the log. Skips stores already reported: the
  /// transaction would have flushed them had they been logged.
  void judge() {
    std::vector<Word> pending;
    for (const auto& [line, words] : lines_)
      for (const Word& word : words)
        if (word.state == State::dirty || word.state == State::awaiting) pending.push_back(word);
    std::sort(pending.begin(), pending.end(),
              [](const Word& a, const Word& b) { return a.store < b.store; });
    const auto same = [](const Word& a, const Word& b) { return a.store == b.store; };
    pending.erase(std::unique(pending.begin(), pending.end(), same), pending.end());
    for (const Word& word : pending) {
      const Event& event = log_.events[word.store];
      if (of_library(event.site) || findings_.has(word.store)) continue;
      if (word.state == State::dirty)
        findings_.add(Rule::unflushed, word.store);
      else
        findings_.add(Rule::unfenced, word.store, log_.events[word.flush].site);
    }
  }

private:
  enum class State : std::uint8_t { durable, dirty, awaiting };
  struct Word {
    std::uint32_t store = 0; ///< number of the last store
    std::uint32_t flush = 0; ///< awaiting: of its first flush, or of the non-temporal store
    State state = State::durable;
  };
  using Line = std::array<Word, words_in_line>;

  template <class Visit>
  void for_words(const Event& event, const Visit& visit) {
    Line* line = nullptr;
    for (std::uint64_t at = event.address / word_bytes; at * word_bytes < end_of(event); ++at) {
      if (line == nullptr || at % words_in_line == 0) line = &lines_[at / words_in_line];
      visit((*line)[at % words_in_line]);
    }
  }
  /// The words of all known lines that an event touches.
  template <class Visit>
  void for_lines(const Event& event, const Visit& visit) {
    for (std::uint64_t line = event.address / line_bytes; line * line_bytes < end_of(event); ++line)
      if (const auto known = lines_.find(line); known != lines_.end())
        for (Word& word : known->second)
          visit(word);
  }

  const Log& log_;
  Findings& findings_;
  std::unordered_map<std::uint64_t, Line> lines_;
  std::unordered_map<std::uint16_t, std::vector<std::uint32_t>> awaiting_; ///< by thread
};

/// What the transaction of a thread logs and stores.
class Transaction {
public:
  Transaction(const Log& log, Findings& findings) : log_(log), findings_(findings) {}

  void begin() {
    logged_ = flushed_ = {};
    calls_.clear();
    unlogged_.clear();
    active_ = true;
  }
  void log(std::uint32_t number) {
    const Event& event = log_.events[number];
    if (!active_ || event.bytes == 0) return;
    if (logged_.has_all(event.address, end_of(event)) && !of_library(event.site))
      findings_.add(Rule::repeated_log, number);
    logged_.add(event.address, end_of(event));
    calls_.push_back(number);
  }
  void store(std::uint32_t number) {
    const Event& event = log_.events[number];
    if (active_ && !of_library(event.site) && !logged_.has_all(event.address, end_of(event)))
      unlogged_.push_back(number);
  }
  /// What the program flushes itself, it does not leave to the transaction.
  void flush(const Event& event) {
    if (active_ && !of_library(event.site)) flushed_.add(event.address, end_of(event));
  }
  void end() {
    for (const std::uint32_t number : unlogged_) {
      const Event& event = log_.events[number];
      if (flushed_.has_all(event.address, end_of(event))) continue;
      const Site call = first_call_for(event);
      if (logged_.has_all(event.address, end_of(event)))
        findings_.add(Rule::late_log, number, call);
      else if (logged_.has_some(event.address, end_of(event)))
        findings_.add(Rule::short_log, number, call);
      else
        findings_.add(Rule::unlogged, number);
    }
    active_ = false;
  }

private:
  Site first_call_for(const Event& store) const {
    for (const std::uint32_t number : calls_) {
      const Event& call = log_.events[number];
      if (call.address < end_of(store) && store.address < end_of(call)) return call.site;
    }
    return {};
  }

  const Log& log_;
  Findings& findings_;
  bool active_ = false;
  Ranges logged_, flushed_;
  std::vector<std::uint32_t> calls_, unlogged_; ///< numbers of events
};

} // namespace

std::vector<LintFinding> lint(const Log& log) {
  Findings findings(log);
  Durability durability(log, findings);
  std::unordered_map<std::uint16_t, Transaction> transactions;
  const auto of = [&](const Event& event) -> Transaction& {
    return transactions.try_emplace(event.thread, log, findings).first->second;
  };
  for (std::uint32_t number = 0; number < log.events.size(); ++number) {
    const Event& event = log.events[number];
    switch (event.kind) {
    case EventKind::store:
    case EventKind::nt_store:
      durability.store(number);
      of(event).store(number);
      break;
    case EventKind::flush:
      durability.flush(number);
      of(event).flush(event);
      break;
    case EventKind::fence: durability.fence(event.thread); break;
    case EventKind::log: of(event).log(number); break;
    case EventKind::tx_begin: of(event).begin(); break;
    case EventKind::tx_end: of(event).end(); break;
    case EventKind::begin:
    case EventKind::end:
    case EventKind::load: break;
    }
  }
  durability.judge();
  return findings.take();
}

const char* name(Rule rule) {
  constexpr const char* names[] = {"unflushed", "unfenced",       "unlogged",       "late_log",
                                   "short_log", "repeated_flush", "needless_flush", "repeated_log"};
  return names[static_cast<std::size_t>(rule)];
}

} // namespace nearfar::crash
