// A trace that was read once, for many models to go through: its tables, what its records say in
// all, and of the records every so-manyth block.
//
// Sampling       as many blocks are kept as hold at most `most_records`; each time they are more,
//                every other one is dropped, and from then on half as many are kept.
// Memory         40 bytes a record that is kept.
// Thread safety  const members from any number of threads.
#pragma once

#include <array>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/result.hpp"
#include "trace/format.hpp"
#include "trace/reader.hpp"
#include "trace/stalls.hpp"

namespace nearfar::trace {

/// What records say in all, and site by site.
struct RecordCounts {
  using Kinds = std::array<std::uint64_t, kinds>;
  Kinds all{};
  std::uint64_t dependent = 0;
  std::vector<Kinds> sites;

  void add(std::span<const Record> records, const Tables& tables);
};

/// Pages of 4 KiB that records lie in, of sites that no allocation made: stacks, globals, mappings.
class FixedPages {
public:
  void add(std::span<const Record> records, const Tables& tables);
  std::size_t count() const { return seen_.size(); }

private:
  std::unordered_set<std::uint64_t> seen_;
  std::uint64_t last_ = ~std::uint64_t{0}; ///< which most records are in
};

class Sampled {
public:
  /// Errors: those of Reader::open. A trace that is cut short is read up to there.
  static Result<Sampled> read(const char* path, std::uint64_t most_records);

  const Reader& reader() const { return reader_; } ///< at its end: header, tables, totals
  const RecordCounts& counts() const { return counts_; }
  const FixedPages& fixed_pages() const { return fixed_pages_; }
  /// One block in so many was kept.
  std::uint64_t every() const { return every_; }
  std::span<const std::vector<Record>> blocks() const { return blocks_; }

  /// What each placement costs, by as many threads as there are processors.
  std::vector<Cost> costs(std::vector<Costs> accounts) const;

private:
  explicit Sampled(Reader reader) : reader_(std::move(reader)) {}
  void keep(std::span<const Record> block, std::uint64_t most_records);
  Cost cost(Costs& account) const;

  Reader reader_;
  RecordCounts counts_;
  FixedPages fixed_pages_;
  std::vector<std::uint32_t> sites_; ///< of each object
  std::vector<std::vector<Record>> blocks_;
  std::uint64_t every_ = 1;
  std::uint64_t block_ = 0; ///< blocks seen
  std::uint64_t kept_ = 0;  ///< records
};

} // namespace nearfar::trace
