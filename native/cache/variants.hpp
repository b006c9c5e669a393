// Several caches under the same stream of accesses, each with other assumptions.
//
// Thread safety  one Caches a thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cache/cache.hpp"

namespace nearfar::cache {

/// An event of a line.
enum class Happens : unsigned char {
  read,
  write,
  visit,             ///< a read that the operation waits for
  visit_second_line, ///< the second line of the visit before it
  persist,           ///< written, then flushed
};

class Event {
public:
  Event(std::uint64_t line, Happens what) : word_(line << 8 | static_cast<std::uint64_t>(what)) {}
  std::uint64_t line() const { return word_ >> 8; }
  Happens what() const { return static_cast<Happens>(word_ & 0xff); }

private:
  std::uint64_t word_; ///< packed, because there are many events
};

/// A cache with one set of assumptions.
class Variant {
public:
  Variant(Cache cache, bool flush_evicts) : cache_(std::move(cache)), flush_evicts_(flush_evicts) {}

  void run(const std::vector<Event>& events) {
    const std::size_t count = events.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (i + ahead < count) cache_.prefetch(events[i + ahead].line());
      run(events[i]);
    }
  }

  void forget_misses() { missed_ = 0; }
  std::uint64_t missed() const { return missed_; }

private:
  static constexpr std::size_t ahead = 12; // enough to hide this machine's memory

  bool access(std::uint64_t line, bool write) {
    if (cache_.touch(line, write)) return true;
    cache_.fill(line, write);
    return false;
  }

  void run(const Event& event) {
    const bool write = event.what() == Happens::write || event.what() == Happens::persist;
    const bool hit = access(event.line(), write);
    if (event.what() == Happens::visit) {
      visit_missed_ = !hit;
      missed_ += !hit;
    } else if (event.what() == Happens::visit_second_line) {
      missed_ += !hit && !visit_missed_;
    } else if (event.what() == Happens::persist) {
      cache_.flush(event.line(), flush_evicts_);
    }
  }

  Cache cache_;
  bool flush_evicts_;
  bool visit_missed_ = false;
  std::uint64_t missed_ = 0;
};

/// The caches. Each processes a block of events at a time: it then has the caches of this machine
/// for itself, and can prefetch the next events.
class Caches {
public:
  Caches(std::vector<Variant> variants, unsigned line_bytes)
      : variants_(std::move(variants)), line_bytes_(line_bytes) {
    events_.reserve(block);
  }

  /// While off, events are ignored.
  void turn(bool on) { on_ = on; }

  void access(std::uint64_t address, bool write) {
    happen(address / line_bytes_, write ? Happens::write : Happens::read);
  }

  /// Accesses element `index` of an array that is traversed in order; looks up each line once.
  void stream(std::uint64_t array, std::uint64_t index, std::uint64_t element_bytes, bool write) {
    const std::uint64_t address = array + index * element_bytes;
    if (address % line_bytes_ < element_bytes) access(address, write);
  }

  /// Reads one or two lines, as one visit.
  void visit(std::uint64_t first, std::uint64_t last) {
    happen(first / line_bytes_, Happens::visit);
    if (last / line_bytes_ != first / line_bytes_)
      happen(last / line_bytes_, Happens::visit_second_line);
  }

  /// Writes and flushes the lines [first, last]; returns their number.
  std::uint64_t persist(std::uint64_t first, std::uint64_t last) {
    const std::uint64_t begin = first / line_bytes_;
    const std::uint64_t end = last / line_bytes_ + 1;
    for (std::uint64_t line = begin; line < end; ++line)
      happen(line, Happens::persist);
    return end - begin;
  }

  void forget_misses() {
    run();
    for (Variant& variant : variants_)
      variant.forget_misses();
  }

  /// The number of visits that missed so far, by variant.
  std::vector<std::uint64_t> missed() {
    run();
    std::vector<std::uint64_t> out;
    for (const Variant& variant : variants_)
      out.push_back(variant.missed());
    return out;
  }

private:
  static constexpr std::size_t block = 1 << 16;

  void happen(std::uint64_t line, Happens what) {
    if (!on_) return;
    if (events_.size() == block) run();
    events_.emplace_back(line, what);
  }

  void run() {
    for (Variant& variant : variants_)
      variant.run(events_);
    events_.clear();
  }

  std::vector<Variant> variants_;
  std::vector<Event> events_;
  unsigned line_bytes_;
  bool on_ = true;
};

} // namespace nearfar::cache
