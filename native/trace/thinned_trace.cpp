#include "trace/thinned_trace.hpp"

#include <algorithm>
#include <cmath>

#include "base/parallel_for.hpp"

namespace nearfar::trace {

void RecordCounts::add(std::span<const Record> records, const Tables& tables) {
  sites.resize(tables.sites.size());
  for (const Record& record : records) {
    const auto kind = static_cast<std::size_t>(record.kind);
    ++all[kind];
    ++sites[tables.objects[record.object].site][kind];
    dependent += record.depends != 0;
  }
}

void RecordCounts::add(const RecordCounts& counts, std::uint64_t represented, std::uint64_t own) {
  if (own == 0) return;
  sites.resize(std::max(sites.size(), counts.sites.size()));
  const double times = static_cast<double>(represented) / static_cast<double>(own);
  const auto scaled = [times](std::uint64_t count) {
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * times));
  };
  dependent += scaled(counts.dependent);
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    all[kind] += scaled(counts.all[kind]);
    for (std::size_t site = 0; site < counts.sites.size(); ++site)
      sites[site][kind] += scaled(counts.sites[site][kind]);
  }
}

void add_pages(std::span<const Record> records, const Tables& tables, FirstTouches& touched) {
  for (const Record& record : records) {
    if (!touched.may_change(record.line)) continue;
    const std::uint32_t site = tables.objects[record.object].site;
    touched.add(record.line, {site, tables.sites[site].kind == SiteKind::heap});
  }
}

Result<ThinnedTrace> ThinnedTrace::read(const char* path, std::uint64_t max_records) {
  Result<TraceReader> reader = TraceReader::open(path);
  if (!reader) return reader.error();
  ThinnedTrace made(std::move(*reader));
  for (auto block = made.reader_.next(); !block.empty(); block = made.reader_.next())
    made.take(block, max_records);
  made.represent(made.reader_.position());
  const Tables& tables = made.reader_.tables();
  made.counts_.sites.resize(tables.sites.size());
  for (const Object& object : tables.objects)
    made.sites_.push_back(object.site);
  return made;
}

void ThinnedTrace::take(std::span<const Record> block, std::uint64_t max_records) {
  const std::uint64_t begin = reader_.position() - block.size();
  represent(begin);
  last_ = {};
  last_.add(block, reader_.tables());
  last_begin_ = begin;
  last_records_ = block.size();
  add_pages(block, reader_.tables(), touched_);
  keep(block, block_++ + reader_.totals()[Total::left_out] / block_records, max_records);
}

/// Counts the block before, and with it the records that were left out since, up to this record.
void ThinnedTrace::represent(std::uint64_t up_to) {
  const std::uint64_t passed = up_to > last_begin_ ? up_to - last_begin_ : 0;
  counts_.add(last_, std::max(passed, last_records_), last_records_);
}

/// `slot`: number of the block among all, those left out included.
void ThinnedTrace::keep(std::span<const Record> block, std::uint64_t slot,
                        std::uint64_t max_records) {
  while (slot > last_slot_ + every_) // what lies between was left out
    thin();
  last_slot_ = std::max(last_slot_, slot);
  if (slot % every_ != 0) return;
  blocks_.emplace_back(block.begin(), block.end());
  kept_ += block.size();
  while (kept_ > max_records && blocks_.size() > 1)
    thin();
}

void ThinnedTrace::thin() {
  every_ *= 2;
  kept_ = 0;
  for (std::size_t i = 0; 2 * i < blocks_.size(); ++i) {
    if (i > 0) blocks_[i] = std::move(blocks_[2 * i]);
    kept_ += blocks_[i].size();
  }
  blocks_.resize((blocks_.size() + 1) / 2);
}

Cost ThinnedTrace::cost(StallModel& account) const {
  for (const std::vector<Record>& block : blocks_) {
    if (every_ > 1) account.skip_records();
    account.take(block, sites_);
  }
  return account.finish(every_ > 1 ? 0 : reader_.totals()[Total::instructions],
                        reader_.tables().sites.size());
}

std::vector<Cost> ThinnedTrace::costs(std::vector<StallModel> accounts) const {
  std::vector<Cost> made(accounts.size());
  parallel_for(accounts.size(), [&](std::size_t i) { made[i] = cost(accounts[i]); });
  return made;
}

} // namespace nearfar::trace
