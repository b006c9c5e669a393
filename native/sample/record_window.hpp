// Sorts the records of a file by time, with few of them in memory.
//
// Rounds         perf reads the rings of all CPUs one after the other, and marks the end of each
//                such round. A record that is written in a round is later than all that were
//                written before the round before it began.
// Bound          without marks, or if a round is very long, max_records are sorted at a time; a
//                record that comes later than that keeps its place in the file.
// Thread safety  none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace nearfar::sample {

/// `Record` has a member `time_ns`.
template <class Record>
class RecordWindow {
public:
  static constexpr std::size_t max_records = 1 << 18;

  /// Adds a record. Calls take(Record&) for the earlier half if there are too many.
  template <class Take>
  void add(Record record, const Take& take) {
    last_ns_ = std::max(last_ns_, record.time_ns);
    records_.push_back(std::move(record));
    if (records_.size() < max_records) return;
    sort();
    give(records_.begin() + max_records / 2, take);
  }

  /// A round ends: calls take() for all up to the last time of the round before.
  template <class Take>
  void end_round(const Take& take) {
    sort();
    const std::uint64_t until_ns = std::exchange(round_ns_, last_ns_);
    give(std::ranges::upper_bound(records_, until_ns, {}, &Record::time_ns), take);
  }

  /// Calls take() for the rest.
  template <class Take>
  void finish(const Take& take) {
    sort();
    give(records_.end(), take);
  }

private:
  using Iterator = typename std::vector<Record>::iterator;

  void sort() { std::ranges::stable_sort(records_, {}, &Record::time_ns); }

  template <class Take>
  void give(Iterator end, const Take& take) {
    std::for_each(records_.begin(), end, take);
    records_.erase(records_.begin(), end);
  }

  std::vector<Record> records_;
  std::uint64_t last_ns_ = 0;
  std::uint64_t round_ns_ = 0; ///< the last time when the last round ended
};

} // namespace nearfar::sample
