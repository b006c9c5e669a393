#include "trace/live_objects.hpp"

#include <algorithm>

#include "trace/elf.hpp"

namespace nearfar::trace {

namespace {

constexpr std::uint64_t line_bytes = 64;

/// Whether a range that ends behind the address holds it, or begins in the rest of its line.
bool in_line(const ObjectRange* range, std::uint64_t address) {
  return range != nullptr && range->begin / line_bytes <= address / line_bytes;
}

std::uint64_t with_process(std::uint32_t process, std::uint64_t address) {
  return address | std::uint64_t{process} << process_shift;
}

} // namespace

LiveObjects::Process& LiveObjects::process(std::uint32_t number) {
  if (number >= processes_.size()) processes_.resize(std::size_t{number} + 1);
  Process& of = processes_[number];
  of.found.fill({}); // the caller may change it
  return of;
}

std::uint32_t LiveObjects::add_site(Site site) {
  sites_.push_back({std::move(site), 0, 0});
  return static_cast<std::uint32_t>(sites_.size() - 1);
}

std::uint32_t LiveObjects::ensure_site_number(std::uint32_t place) {
  KnownSite& known = sites_[place];
  if (known.number == 0 && place != 0) known.number = writer_->site(known.site);
  return known.number;
}

Frame LiveObjects::intern_frame(std::uint64_t code) {
  for (auto known = modules_.rbegin(); known != modules_.rend(); ++known) {
    if (code < known->low || code >= known->high) continue;
    if (known->number < 0)
      known->number = static_cast<std::int32_t>(writer_->module(known->module));
    return {known->number, code - known->module.base};
  }
  return {-1, code};
}

void LiveObjects::site(std::uint64_t key, const std::vector<std::uint64_t>& chain) {
  if (by_key_.contains(key)) return;
  Site site{SiteKind::heap, {}, 0, 0, 0};
  for (const std::uint64_t code : chain)
    site.frames.push_back(intern_frame(code));
  by_key_[key] = add_site(std::move(site));
}

ObjectRange LiveObjects::fresh(std::uint64_t begin, std::uint64_t end, std::uint32_t site,
                               std::uint64_t instruction) const {
  return {begin, end, site, 0, writer_->position(), instruction};
}

void LiveObjects::ended(const ObjectRange& range, std::uint64_t instruction) {
  if (range.number != 0) writer_->died(range.number, instruction);
  KnownSite& known = sites_[range.site];
  known.live_bytes -= std::min(known.live_bytes, range.end - range.begin);
}

void LiveObjects::cut(Ranges& ranges, std::uint64_t low, std::uint64_t high,
                      std::uint64_t instruction) {
  for (ObjectRange* at = ranges.first_ending_after(low); at != nullptr && at->begin < high;) {
    const ObjectRange range = *at;
    ended(range, instruction);
    ranges.remove(range);
    // The part that was not moved becomes an object of its own.
    std::uint64_t& live = sites_[range.site].live_bytes;
    if (range.begin < low) {
      ranges.add(fresh(range.begin, low, range.site, instruction));
      live += low - range.begin;
    }
    if (range.end > high) {
      ranges.add(fresh(high, range.end, range.site, instruction));
      live += range.end - high;
    }
    at = ranges.after(range.begin);
  }
}

void LiveObjects::insert(Ranges& ranges, const ObjectRange& range) {
  if (range.end <= range.begin) return;
  Site& site = sites_[range.site].site;
  ++site.allocations;
  site.bytes += range.end - range.begin;
  place(ranges, range);
}

void LiveObjects::place(Ranges& ranges, const ObjectRange& range) {
  cut(ranges, range.begin, range.end, range.born_instruction);
  ranges.add(range);
  KnownSite& known = sites_[range.site];
  known.live_bytes += range.end - range.begin;
  known.site.peak_bytes = std::max(known.site.peak_bytes, known.live_bytes);
}

void LiveObjects::allocated(std::uint32_t number, std::uint64_t address, std::uint64_t bytes,
                            std::uint64_t key, std::uint64_t instruction) {
  Process& of = process(number);
  const auto known = by_key_.find(key);
  const std::uint32_t site = known == by_key_.end() ? 0 : known->second;
  insert(of.heap, fresh(address, address + std::max<std::uint64_t>(bytes, 1), site, instruction));
}

void LiveObjects::freed(std::uint32_t number, std::uint64_t address, std::uint64_t instruction) {
  Process& of = process(number);
  const ObjectRange* block = of.heap.at(address);
  if (block == nullptr) return; // allocated before the library was there, or by its own means
  ended(*block, instruction);
  of.heap.remove(*block);
}

void LiveObjects::reallocated(std::uint32_t number, std::uint64_t before, std::uint64_t address,
                              std::uint64_t bytes, std::uint64_t instruction) {
  Process& of = process(number);
  const ObjectRange* block = of.heap.at(before);
  const std::uint32_t site = block == nullptr ? 0 : block->site;
  const std::uint64_t had = block == nullptr ? 0 : block->end - block->begin;
  freed(number, before, instruction);
  bytes = std::max<std::uint64_t>(bytes, 1);
  place(of.heap, fresh(address, address + bytes, site, instruction));
  if (bytes > had) sites_[site].site.bytes += bytes - had;
}

void LiveObjects::mapped(std::uint32_t number, std::uint64_t address, std::uint64_t bytes,
                         std::uint64_t instruction) {
  if (mapping_site_ == 0) mapping_site_ = add_site({SiteKind::mapping, {}, 0, 0, 0});
  Process& of = process(number);
  insert(of.mappings, fresh(address, address + bytes, mapping_site_, instruction));
}

void LiveObjects::unmapped(std::uint32_t number, std::uint64_t address, std::uint64_t bytes,
                           std::uint64_t instruction) {
  Process& of = process(number);
  for (Ranges* ranges : of.kinds())
    cut(*ranges, address, address + bytes, instruction);
}

void LiveObjects::remapped(std::uint32_t number, std::uint64_t before, std::uint64_t bytes,
                           std::uint64_t instruction) {
  Process& of = process(number);
  for (Ranges* ranges : of.kinds())
    if (ranges != &of.heap) cut(*ranges, before, before + bytes, instruction);
}

void LiveObjects::stack(std::uint32_t number, std::uint64_t low, std::uint64_t high,
                        std::uint64_t instruction) {
  constexpr std::uint64_t usual_stack = std::uint64_t{8} << 20;
  constexpr std::uint64_t largest_stack = std::uint64_t{16}
                                          << 20; // beyond: a heap with stacks in it
  if (stack_site_ == 0) stack_site_ = add_site({SiteKind::stack, {}, 0, 0, 0});
  Process& of = process(number);
  if (const ObjectRange* known = of.stacks.first_ending_after(low);
      known != nullptr && known->begin <= low && known->end >= high)
    return;
  const ObjectRange* mapping = of.mappings.first_ending_after(low);
  if (!in_line(mapping, low)) { // the first thread's, which the kernel made
    low = std::min(low, high - usual_stack);
  } else if (mapping->end - mapping->begin <= largest_stack) {
    low = mapping->begin;
    high = mapping->end;
  } else {
    return;
  }
  insert(of.stacks, fresh(low, high, stack_site_, instruction));
}

void LiveObjects::module(std::uint32_t number, std::uint64_t address, std::uint64_t offset,
                         const std::string& path) {
  for (const KnownModule& known : modules_)
    if (known.module.path == path && address >= known.low && address < known.high) return;
  const std::optional<Elf> elf = read_elf(path.c_str());
  if (!elf) return;
  const std::optional<std::uint64_t> bias = elf->bias(address, offset);
  if (!bias) return;
  const std::uint64_t low = *bias + elf->low();
  const std::uint64_t high = *bias + elf->high();
  modules_.push_back({low, high, {path, elf->build_id, number, *bias, high - low}, -1});
  const Frame whole = intern_frame(low);
  const std::uint32_t site = add_site({SiteKind::statics, {whole}, 0, 0, 0});
  Process& of = process(number);
  insert(of.statics, fresh(low, high, site, 0));
}

void LiveObjects::forked(std::uint32_t parent, std::uint32_t child) {
  process(std::max(parent, child));
  Process copy = processes_[parent];
  for (Ranges* ranges : copy.kinds())
    ranges->each([this](ObjectRange& range) {
      range.number = 0;
      range.born_record = writer_->position();
      range.born_instruction = 0;
    });
  processes_[child] = std::move(copy);
}

std::uint32_t LiveObjects::named(std::uint32_t number, ObjectRange& range) {
  if (range.number != 0) return range.number;
  range.number = writer_->object({ensure_site_number(range.site), with_process(number, range.begin),
                                  range.end - range.begin, range.born_record,
                                  range.born_instruction, alive, alive});
  owners_.resize(std::size_t{range.number} + 1);
  owners_[range.number] = {ensure_site_number(range.site),
                           sites_[range.site].site.kind == SiteKind::heap};
  return range.number;
}

std::uint32_t LiveObjects::ensure_object_at(std::uint32_t number, std::uint64_t address) {
  if (number >= processes_.size()) return 0;
  Process& of = processes_[number];
  for (const Found& found : of.found)
    if (address >= found.low && address < found.high) return found.number;
  std::uint64_t low = 0, high = ~std::uint64_t{0}; // around the address, free of what comes first
  for (Ranges* ranges : of.kinds()) {
    ObjectRange* at = ranges->first_ending_after(address);
    if (!in_line(at, address)) {
      if (const ObjectRange* before = ranges->last_before(address))
        low = std::max(low, before->end);
      if (at != nullptr) high = std::min(high, at->begin);
      continue;
    }
    const std::uint32_t found = named(number, *at);
    if (address >= at->begin) {
      low = std::max(low, at->begin);
      high = std::min(high, at->end);
      // A line in which the next object begins may be its.
      if (high < at->end) high -= std::min(high, line_bytes);
      of.found[of.next++ % of.found.size()] = {low, high, found};
    }
    return found;
  }
  return 0;
}

void LiveObjects::write_totals() {
  for (std::uint32_t place = 1; place < sites_.size(); ++place)
    if (sites_[place].site.allocations > 0)
      writer_->site_totals(ensure_site_number(place), sites_[place].site);
}

} // namespace nearfar::trace
