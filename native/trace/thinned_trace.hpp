// A trace that is read once for many models: its tables, the totals of its records, and the records
// of every Nth block.
//
// Sampling       blocks with at most `max_records` records are kept. Each time they have more,
//                every other block is dropped, and from then on half as many are kept (as
//                windows.hpp does while a run is traced: blocks that it left out count as dropped).
// Counts         a block of a trace in windows also represents the records left out after it.
// Memory         40 bytes a record that is kept.
// Thread safety  const members from any number of threads.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "trace/format.hpp"
#include "trace/page_touches.hpp"
#include "trace/reader.hpp"
#include "trace/stalls.hpp"

namespace nearfar::trace {

/// Counts of records, in total and by site.
struct RecordCounts {
  using Kinds = std::array<std::uint64_t, kinds>;
  Kinds all{};
  std::uint64_t dependent = 0;
  std::vector<Kinds> sites;

  void add(std::span<const Record> records, const Tables& tables);
  /// Counts of `own` records that stand for `represented`.
  void add(const RecordCounts& counts, std::uint64_t represented, std::uint64_t own);
};

/// Counts the pages that records touch. A file does not contain which were unmapped in between.
void add_pages(std::span<const Record> records, const Tables& tables, FirstTouches& touched);

class ThinnedTrace {
public:
  /// Errors: those of TraceReader::open. A trace that is cut short is read up to there.
  static Result<ThinnedTrace> read(const char* path, std::uint64_t max_records);

  const TraceReader& reader() const { return reader_; } ///< at its end: header, tables, totals
  const RecordCounts& counts() const { return counts_; }
  const FirstTouches& touched() const { return touched_; } ///< by what is in the file
  /// One block in so many was kept.
  std::uint64_t every() const { return every_; }
  std::span<const std::vector<Record>> blocks() const { return blocks_; }
  std::span<const std::uint32_t> sites() const { return sites_; } ///< of each object

  /// Cost of each placement, computed by as many threads as there are CPUs.
  std::vector<Cost> costs(std::vector<StallModel> accounts) const;

private:
  explicit ThinnedTrace(TraceReader reader) : reader_(std::move(reader)) {}
  void take(std::span<const Record> block, std::uint64_t max_records);
  void represent(std::uint64_t up_to);
  void keep(std::span<const Record> block, std::uint64_t slot, std::uint64_t max_records);
  void thin();
  Cost cost(StallModel& account) const;

  TraceReader reader_;
  RecordCounts counts_;
  RecordCounts last_; ///< of the last block
  std::uint64_t last_begin_ = 0, last_records_ = 0;
  FirstTouches touched_;
  std::vector<std::uint32_t> sites_; ///< of each object
  std::vector<std::vector<Record>> blocks_;
  std::uint64_t every_ = 1;
  std::uint64_t block_ = 0; ///< blocks read
  std::uint64_t last_slot_ = 0;
  std::uint64_t kept_ = 0; ///< records
};

} // namespace nearfar::trace
