#include "trace/sampled.hpp"

#include "base/share_out.hpp"

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

void FixedPages::add(std::span<const Record> records, const Tables& tables) {
  constexpr unsigned page_of_line = 12 - 6;
  for (const Record& record : records) {
    const Object& object = tables.objects[record.object];
    const std::uint64_t page = record.line >> page_of_line;
    if (page == last_ || tables.sites[object.site].kind == SiteKind::heap) continue;
    last_ = page;
    seen_.insert(page);
  }
}

Result<Sampled> Sampled::read(const char* path, std::uint64_t most_records) {
  Result<Reader> reader = Reader::open(path);
  if (!reader) return reader.error();
  Sampled made(std::move(*reader));
  for (auto block = made.reader_.next(); !block.empty(); block = made.reader_.next()) {
    made.counts_.add(block, made.reader_.tables());
    made.fixed_pages_.add(block, made.reader_.tables());
    made.keep(block, most_records);
  }
  const Tables& tables = made.reader_.tables();
  made.counts_.sites.resize(tables.sites.size());
  for (const Object& object : tables.objects)
    made.sites_.push_back(object.site);
  return made;
}

void Sampled::keep(std::span<const Record> block, std::uint64_t most_records) {
  if (block_++ % every_ != 0) return;
  blocks_.emplace_back(block.begin(), block.end());
  kept_ += block.size();
  while (kept_ > most_records && blocks_.size() > 1) {
    every_ *= 2;
    kept_ = 0;
    for (std::size_t i = 0; 2 * i < blocks_.size(); ++i) {
      if (i > 0) blocks_[i] = std::move(blocks_[2 * i]);
      kept_ += blocks_[i].size();
    }
    blocks_.resize((blocks_.size() + 1) / 2);
  }
}

Cost Sampled::cost(Costs& account) const {
  for (const std::vector<Record>& block : blocks_) {
    if (every_ > 1) account.pass_by();
    account.take(block, sites_);
  }
  return account.finish(every_ > 1 ? 0 : reader_.totals()[Total::instructions],
                        reader_.tables().sites.size());
}

std::vector<Cost> Sampled::costs(std::vector<Costs> accounts) const {
  std::vector<Cost> made(accounts.size());
  share_out(accounts.size(), [&](std::size_t i) { made[i] = cost(accounts[i]); });
  return made;
}

} // namespace nearfar::trace
