// SPDX-License-Identifier: MIT (LICENSE in this folder)
// Records the accesses of one thread: those that miss its first-level cache become events.
//
// Thread safety  a ThreadRecorder belongs to one thread.
#pragma once

#include "trace/recorder/allocation.hpp"
#include "trace/recorder/dependence_detector.hpp"
#include "trace/recorder/event_encoder.hpp"
#include "trace/recorder/l1_filter.hpp"
#include "trace/recorder/stack_tracker.hpp"

namespace nearfar::trace {

/// Counts that are kept without a call for each access.
struct ThreadCounts {
  std::uint64_t instructions;
  std::uint64_t accesses[2]; ///< loads, stores
  std::uint64_t floating;    ///< instructions that compute with floating point
};

/// An access that missed the first level.
struct Miss {
  std::uint64_t address;
  std::uint64_t code;
  std::uint64_t value; ///< at the address, after a load
  std::uint64_t instructions;
  CacheTag victim;
  bool store;
};

/// Zeroed memory, on which open() and take_slot() are called.
class ThreadRecorder {
public:
  /// False if memory runs out.
  bool open(ring::Shared& shared) {
    events_.open(shared);
    return l1_.open(shared.l1_sets, shared.l1_ways);
  }
  /// Frees what open() allocated.
  void close() { l1_.close(); }

  /// Starts a thread, with a slot of its own; also in a forked child. `counts` is set before.
  void take_slot(std::uint32_t process) {
    slot = &events_.take_slot();
    slot->process = process;
    slot->started = 1;
    dependences_.forget();
    origin_ = *counts;
    counted_[0] = counted_[1] = 0;
  }

  ring::ThreadSlot* slot;
  const ThreadCounts* counts; ///< of this thread alone
  ThreadCounts own_counts;    ///< what `counts` points to if several threads run
  bool counts_accesses;       ///< in place of instructions, whose number is unknown

  /// Reports misses several at a time: between two misses are then so few instructions that the CPU
  /// has the lines of several in flight, as without a recorder. Only for a thread whose memory no
  /// other thread unmaps: the lines are read when they are reported.
  void defer_misses(bool defer) {
    report_misses();
    deferring_ = defer;
  }
  /// Call before memory can be unmapped, and before the thread ends.
  void report_misses() {
    for (unsigned i = 0; i < deferred_count_; ++i)
      report(deferred_[i]);
    deferred_count_ = 0;
  }

  /// Copies the counts into the slot, where the collector reads them.
  void publish_counts() {
    for (unsigned i = 0; i < 2; ++i)
      slot->accesses[i] = counts->accesses[i] - origin_.accesses[i] + counted_[i];
    slot->instructions = instructions();
    slot->floating = counts->floating - origin_.floating;
  }
  /// An access that `counts` does not include.
  void count(bool store) { ++counted_[store]; }

  /// An access whose kind and size are compile-time constants.
  template <bool store>
  [[gnu::always_inline]] void access(std::uint64_t address, std::uint64_t bytes,
                                     std::uint64_t code) {
    if (!l1_.access_newest<store>(address, bytes)) [[unlikely]]
      access_slowly(address, bytes, store, code);
  }
  void access(std::uint64_t address, std::uint64_t bytes, bool store, std::uint64_t code) {
    const bool done =
        store ? l1_.access_newest<true>(address, bytes) : l1_.access_newest<false>(address, bytes);
    if (!done) access_slowly(address, bytes, store, code);
  }

  /// A non-temporal store: one event for each run of stores to a line.
  [[gnu::noinline]] void store_non_temporal(std::uint64_t address, std::uint64_t code) {
    const std::uint64_t line = address >> ring::line_shift;
    if (line == combining_) return;
    combining_ = line;
    if (l1_.invalidate(line)) emit(ring::EventKind::write_back, line << ring::line_shift, 0);
    emit(ring::EventKind::nt_store, address, code);
  }

  /// A store to the stack pointer's address, by a push or a call.
  void push(std::uint64_t address) {
    if (!stack_.contains(address)) extend_stack(address);
  }
  /// A push whose line is the newest of its set lies on a page that is known.
  bool is_newest(std::uint64_t address) const { return l1_.is_newest(address); }
  void set_stack(std::uint64_t low, std::uint64_t end) {
    stack_.set(low, end);
    emit(ring::EventKind::stack, low, end);
  }

  /// A block was allocated or resized; `reported` has the sites that are known to the collector.
  void record_allocation(const Allocation& allocation, const CodeRanges& code,
                         ReportedSites& reported) {
    report_misses();
    publish_counts();
    if (allocation.before != 0) {
      emit_wide(ring::EventKind::reallocate, allocation.address, allocation.bytes,
                allocation.before);
      return;
    }
    const CallChain chain = chain_of(allocation, code);
    if (reported.is_new(chain.key))
      events_.emit_with_words(ring::EventKind::site, chain.key, chain.length, 0, chain.codes,
                              chain.length);
    emit_wide(ring::EventKind::allocate, allocation.address, allocation.bytes, chain.key);
  }
  void record_free(std::uint64_t address) {
    report_misses();
    publish_counts();
    emit(ring::EventKind::free, address, 0);
  }

  /// An event at this point of the thread, other than an access.
  void emit(ring::EventKind kind, std::uint64_t a, std::uint64_t b) {
    report_misses();
    events_.emit(kind, a, b, slot->instructions);
  }
  void emit_wide(ring::EventKind kind, std::uint64_t a, std::uint64_t b, std::uint64_t fourth) {
    report_misses();
    events_.emit_wide(kind, 0, a, b, slot->instructions, fourth);
  }
  EventEncoder& events() {
    report_misses();
    return events_;
  }

private:
  static constexpr unsigned max_deferred = 32;

  /// Not inlined: the callers are the fast path.
  [[gnu::noinline]] void access_slowly(std::uint64_t address, std::uint64_t bytes, bool store,
                                       std::uint64_t code) {
    if (L1Filter::crosses_line(address, bytes)) [[unlikely]] {
      access_lines(address, bytes, store, code);
      return;
    }
    access_line(address >> ring::line_shift, address, store, code);
  }

  [[gnu::noinline]] void access_lines(std::uint64_t address, std::uint64_t bytes, bool store,
                                      std::uint64_t code) {
    const std::uint64_t first = address >> ring::line_shift;
    const std::uint64_t last = (address + bytes - 1) >> ring::line_shift;
    access_line(first, address, store, code);
    for (std::uint64_t line = first + 1; line <= last; ++line)
      access_line(line, line << ring::line_shift, store, code);
  }

  [[gnu::always_inline]] void access_line(std::uint64_t line, std::uint64_t address, bool store,
                                          std::uint64_t code) {
    CacheTag victim;
    if (!l1_.access(line, store, victim)) miss(address, store, code, victim);
  }

  [[gnu::noinline]] void miss(std::uint64_t address, bool store, std::uint64_t code,
                              CacheTag victim) {
    ++slot->l1_misses;
    const Miss missed{address,        code,   DependenceDetector::value_at(address),
                      instructions(), victim, store};
    if (!deferring_) return report(missed);
    deferred_[deferred_count_++] = missed;
    if (deferred_count_ == max_deferred) report_misses();
  }

  std::uint64_t instructions() const {
    return counts_accesses ? counts->accesses[0] + counts->accesses[1] - origin_.accesses[0] -
                                 origin_.accesses[1] + counted_[0] + counted_[1]
                           : counts->instructions - origin_.instructions;
  }

  void report(const Miss& miss) {
    publish_counts();
    const std::uint8_t parent = dependences_.find(miss.address, miss.code, miss.store, miss.value);
    events_.emit_wide(miss.store ? ring::EventKind::store : ring::EventKind::load, parent,
                      miss.address, miss.code, miss.instructions,
                      L1Filter::is_dirty(miss.victim) ? L1Filter::line_of(miss.victim) : 0);
    if (!miss.store) dependences_.add_line(miss.address >> ring::line_shift);
  }

  [[gnu::noinline]] void extend_stack(std::uint64_t address) {
    stack_.extend(address);
    emit(ring::EventKind::stack, stack_.low(), stack_.end());
  }

  L1Filter l1_;
  EventEncoder events_;
  bool deferring_;
  unsigned deferred_count_;
  Miss deferred_[max_deferred]; ///< not reported yet
  std::uint64_t counted_[2];
  ThreadCounts origin_;     ///< `counts` when the thread began
  std::uint64_t combining_; ///< the line of the last non-temporal store
  StackTracker stack_;
  DependenceDetector dependences_;
};

} // namespace nearfar::trace
