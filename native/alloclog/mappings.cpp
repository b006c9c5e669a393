#include "alloclog/mappings.hpp"

#include <algorithm>

namespace nearfar::alloclog {

Mappings Mappings::forked_from(const Mappings& parent) {
  Mappings child;
  child.ranges_ = parent.ranges_;
  return child;
}

void Mappings::follow(const SlotFile& file, ImageNumber image) {
  const std::uint64_t count = file.header().mapping_count;
  if (count > applied_ && count - applied_ > mapping_events) {
    lost_ += count - applied_ - mapping_events;
    applied_ = count - mapping_events;
  }
  while (applied_ < count) {
    const std::optional<MappingEvent> event = file.mapping_event(applied_ + 1);
    if (!event) return; // it is being written
    apply(*event, image);
    ++applied_;
  }
}

std::optional<MappedBlock> Mappings::found(const Ranges& ranges, std::uint64_t address) {
  auto at = ranges.upper_bound(address);
  if (at == ranges.begin()) return std::nullopt;
  --at;
  return address < at->second.end ? std::optional(at->second.block) : std::nullopt;
}

std::optional<MappedBlock> Mappings::find(std::uint64_t address) const {
  return found(ranges_, address);
}

std::optional<MappedBlock> Mappings::find_unmapped(std::uint64_t address) const {
  return found(unmapped_, address);
}

const MappingTotals* Mappings::totals(std::uint16_t site) const {
  const auto found = totals_.find(site);
  return found == totals_.end() ? nullptr : &found->second;
}

void Mappings::apply(const MappingEvent& event, ImageNumber image) {
  const std::uint64_t end = event.address + event.bytes;
  if (event.bytes == 0 || end < event.address || end >> address_bits != 0) return;
  if (event.source == unmapped) return remove(event.address, end, image);
  MappedBlock block{event.address, event.bytes, {image, static_cast<std::uint16_t>(event.source)}};
  if (event.source > site_mask) { // moved: it keeps its site
    const auto old = find(event.source);
    if (!old) return remove(event.address, end, image);
    block.site = old->site;
  }
  add(block, image);
}

void Mappings::add(const MappedBlock& block, ImageNumber image) {
  remove(block.begin, block.begin + block.bytes, image);
  if (ranges_.size() >= max_ranges) return;
  ranges_[block.begin] = {block.begin + block.bytes, block};
  if (block.site.image != image) return; // a parent's, moved
  MappingTotals& totals = totals_[block.site.number];
  ++totals.calls;
  totals.bytes += block.bytes;
  totals.live_bytes += block.bytes;
  totals.peak_live_bytes = std::max(totals.peak_live_bytes, totals.live_bytes);
}

template <class Visit>
void Mappings::cut(Ranges& ranges, std::uint64_t begin, std::uint64_t end, Visit visit) {
  auto at = ranges.upper_bound(begin);
  if (at != ranges.begin() && std::prev(at)->second.end > begin) --at;
  while (at != ranges.end() && at->first < end) {
    const auto [old_begin, old] = *at;
    at = ranges.erase(at);
    visit(std::max(old_begin, begin), std::min(old.end, end), old.block);
    if (old_begin < begin) ranges[old_begin] = {begin, old.block};
    if (old.end > end) at = std::next(ranges.insert_or_assign(end, old).first);
  }
}

void Mappings::remove(std::uint64_t begin, std::uint64_t end, ImageNumber image) {
  cut(ranges_, begin, end, [&](std::uint64_t from, std::uint64_t to, const MappedBlock& block) {
    count_removed(block.site, to - from, image);
    cut(unmapped_, from, to, [](std::uint64_t, std::uint64_t, const MappedBlock&) {});
    if (unmapped_.size() < max_ranges) unmapped_[from] = {to, block};
  });
}

void Mappings::count_removed(const SiteReference& site, std::uint64_t bytes, ImageNumber image) {
  if (site.image != image) return;
  MappingTotals& totals = totals_[site.number];
  totals.live_bytes -= std::min(bytes, totals.live_bytes);
}

} // namespace nearfar::alloclog
