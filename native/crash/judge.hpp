// Judges stores, flushes, fences and log calls as they happen, in the program that makes them.
//
// Model          lint.hpp
// Memory         one mapping, of a file, so that what was found remains if the program is killed.
//                Most of it stays sparse (line_states.hpp).
// Cost           linear in the bytes of an event and of the lines that it flushes
// Thread safety  none: callers exclude each other
// Freestanding   allocates nothing and throws nothing: it runs inside other programs
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "crash/line_states.hpp"
#include "crash/sections.hpp"
#include "storelog/event.hpp"

namespace nearfar::crash {

/// Errors come before notes: findings are listed in this order. A new rule also needs: name() in
/// crash/lint.cpp and RULES in python/nearfar/verify/lint.py (SARIF follows from it), both in the
/// order of this enumeration; the help in python/nearfar/cli/crash/lint.py and its snapshot,
/// docs/tutorials/crash.md, docs/coming-from/pmemcheck.md, CHANGELOG.md; a case in lint_test.cpp, and
/// a marked line in tests/programs/lint.c with the counts in tests/test_crash_lint.py, or for
/// transactions in a program in that test. If stores were not seen, crash/tool/lint.cpp leaves out
/// rules that this makes unreliable; if flushes were not seen, findings of _NEED_FLUSH in
/// verify/lint.py are not certain.
enum class Rule : std::uint32_t {
  unflushed,      ///< a store that no flush follows; `site` is the store
  unfenced,       ///< a store that is flushed, and no fence follows; `other` is the flush
  unlogged,       ///< a store in a transaction to bytes that it neither logs nor flushes itself
  late_log,       ///< a store in a transaction before its bytes are logged; `other` is the call
  short_log,      ///< a store of which only a part was logged; `other` is the call
  freed_store,    ///< a store to an object that was freed; `other` is the call that freed it
  unended,        ///< a transaction that was never ended; `site` is its beginning
  repeated_flush, ///< a flush of lines that only await a fence; nothing was stored since
  needless_flush, ///< a flush of lines that are durable or were never stored to
  repeated_log,   ///< a log call for bytes that the transaction has logged or allocated
  unlogged_flush, ///< a store in a transaction to bytes that it does not log, and flushes itself
  unchanged,      ///< a store that no flush follows, of what was durable there already
};

/// A rule that was broken at a place, by the number of its site.
struct JudgedFinding {
  Rule rule;
  std::uint32_t site;
  std::uint32_t other; ///< Judge::no_site if there is none
  std::uint32_t bytes;
  std::uint64_t address;
  std::uint64_t count;
};

/// Something that happened to the pool; `site` is any number for a place.
struct JudgedEvent {
  storelog::EventKind kind;
  bool of_library; ///< libpmem or libpmemobj did it on its own: it is followed, not judged
  std::uint16_t thread;
  std::uint32_t site;
  std::uint32_t bytes;
  std::uint64_t address; ///< tx_end: 0 if the transaction was committed
  bool changes = true;   ///< of a store: false if the bytes were there already
};

/// What the allocator does with bytes of the pool.
enum class Use : std::uint8_t {
  allocated,      ///< an object that nothing refers to before the program says so
  published,      ///< such an object, to which the pool refers from now on
  of_transaction, ///< such an object, which is there only if the transaction commits
  freed,          ///< in a transaction: when that commits
  never_durable,  ///< initialized anew by each process that opens the pool
};

/// Which stores a judge sees.
enum class Observed : std::uint8_t {
  all,
  changes, ///< not those that change nothing, on pages to which several threads store
};

class Judge {
public:
  static constexpr std::uint32_t no_site = UINT32_MAX;
  /// A thread that is not known: of stores, and of fences that end changes from outside.
  static constexpr std::uint16_t any_thread = UINT16_MAX;

  /// Address space for a pool of this size.
  static std::size_t memory_bytes(std::uint64_t pool_bytes);
  /// `memory` has that many bytes: zeros, or what a judge left there.
  Judge(void* memory, std::uint64_t pool_bytes, Observed observed = Observed::all);

  void take(const JudgedEvent& event);
  /// The kind of the event does not matter.
  void take(Use use, const JudgedEvent& event);
  /// All that was stored until now is durable and correct.
  void forget();

  std::uint64_t events() const { return head_->events; }
  std::uint64_t stores() const { return head_->stores; }
  /// Whether this byte is of an object that was allocated and is not yet published: a transaction
  /// may store to it unlogged.
  bool is_new(std::uint64_t address) const;
  /// The judgement ran out of room, and is not complete.
  bool is_full() const { return head_->full; }

  /// Calls visit(address, bytes) for the words of a range that never become durable.
  template <class Visit>
  void for_each_never_durable(std::uint64_t address, std::uint64_t bytes,
                              const Visit& visit) const {
    lines_.for_known_lines(address, bytes, [&](const LineState& line, const LinePart& part) {
      for_each_word(static_cast<Words>(line.never_durable & part.words), [&](unsigned word) {
        visit(part.line * storelog::line_bytes + word * word_bytes, word_bytes);
      });
    });
  }

  /// Adds what is not durable and transactions that are open. If the program was killed, adds only
  /// stores after which their thread made a fence: it might still have flushed the others.
  void finish(bool ended);
  /// Each rule and site once, in any order.
  std::span<const JudgedFinding> findings() const { return {findings_, head_->findings}; }

private:
  Judge(Sections sections, std::uint64_t pool_bytes, Observed observed);

  static constexpr std::uint32_t max_findings = 1 << 14;
  static constexpr std::uint32_t max_notes = 1 << 28;
  static constexpr std::uint32_t max_threads = 1 << 16;

  /// An entry of a list: bytes and the site and number of an event.
  struct Note {
    std::uint32_t next; ///< 0 ends a list
    std::uint32_t site;
    std::uint32_t sequence;
    std::uint32_t bytes;
    std::uint64_t address;
  };
  struct Thread {
    std::uint32_t awaiting; ///< lists of notes: flushes that await a fence
    std::uint32_t unlogged; ///< stores of the transaction, newest first
    std::uint32_t calls;    ///< its log calls, newest first
    std::uint32_t freed;    ///< objects that it freed
    std::uint32_t made;     ///< objects that it allocated since its last transaction, or in it
    std::uint32_t transaction;
    std::uint32_t begin; ///< site
    std::uint32_t fence; ///< sequence at its last fence
    bool active;
    bool left_open; ///< its last transaction had not ended when the program did
  };
  struct Head {
    std::uint64_t events, stores;
    std::uint32_t sequence, fence, transactions, findings, notes, unused_note;
    std::uint32_t threads; ///< one more than the largest number
    bool full;
  };

  void store(const JudgedEvent& event, bool non_temporal);
  void note_unlogged(const JudgedEvent& store, Thread& thread);
  void remember_thread(const JudgedEvent& store);
  bool may_miss_stores(std::uint64_t address, std::uint64_t bytes) const;
  void flush(const JudgedEvent& event);
  void fence(Thread& thread);
  void log(const JudgedEvent& event);
  void begin(Thread& thread, std::uint32_t site);
  void end(Thread& thread, bool committed);
  void set_reachable(std::uint64_t address, std::uint64_t bytes);
  void roll_back(const Thread& thread, const Note& logged);
  void judge_store(const Thread& thread, const Note& store);
  bool is_active(std::uint32_t transaction) const;
  bool is_overdue(const LineState& line, unsigned word) const;
  bool is_left_open(std::uint32_t transaction) const;
  LineState& own_part(LineState& line, const Thread& thread);
  bool has_all(const Thread& thread, std::uint64_t address, std::uint64_t bytes) const;
  void set_logged(LineState& line, const Thread& thread, const LinePart& part);
  bool is_forgettable(const LineState& line) const;
  void forget_durable(const Note& note);
  Words awaiting_commit(const LineState& line) const;
  void use_again(std::uint64_t address);
  void add(Rule rule, std::uint32_t site, std::uint32_t other, std::uint64_t address,
           std::uint32_t bytes);
  void note(std::uint32_t& list, std::uint64_t address, std::uint64_t bytes, std::uint32_t site);
  template <class Visit>
  void drain(std::uint32_t& list, const Visit& visit);

  std::uint64_t pool_bytes_;
  Head* head_;
  Thread* threads_;
  JudgedFinding* findings_;
  Note* notes_; ///< the first is not used
  Observed observed_;
  std::uint8_t* threads_of_pages_; ///< the one thread that stores to it, from 1, or several
  LineStates lines_;
};

} // namespace nearfar::crash
