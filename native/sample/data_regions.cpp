#include "sample/data_regions.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace nearfar::sample {

namespace {

/// Distance of a stack's data from the stack pointer: below it a red zone, above it all callers.
constexpr std::uint64_t red_zone = 4096;
constexpr std::uint64_t max_stack = 8 << 20;
/// The same for stacks that the kernel does not name, such as those of coroutines, next to other
/// data.
constexpr std::uint64_t max_unnamed_stack = 256 << 10;

/// Memory of the allocation log and data of its library, which the program's threads access for the
/// log.
constexpr std::string_view own_memory = "/memfd:nearfar-";
constexpr std::string_view own_library = "/libnearfar-allocation-log.so";

bool is_own(std::string_view path) {
  return path.starts_with(own_memory) || path.ends_with(own_library);
}

std::uint64_t rounded(double value) {
  return value > 0 ? static_cast<std::uint64_t>(std::llround(value)) : 0;
}

DataRegion of_kind(trace::SiteKind kind) {
  DataRegion made;
  made.kind = kind;
  return made;
}

} // namespace

bool DataRegions::is_logged(pid_t process, std::uint64_t address) const {
  return log_ && (log_->find(process, address) || log_->find_mapping(process, address) ||
                  log_->find_freed(process, address) || log_->find_unmapped(process, address));
}

std::uint32_t DataRegions::number_of(pid_t process, std::uint64_t address,
                                     std::uint64_t stack_pointer) {
  if (log_)
    if (const auto site = log_->find(process, address))
      return site_region(process, *site, trace::SiteKind::heap);
  if (is_stack(process, address, stack_pointer))
    return number_of_region(of_kind(trace::SiteKind::stack));
  if (log_)
    if (const auto block = log_->find_mapping(process, address))
      return mapped_region(process, *block);
  if (const auto number = freed_region(process, address)) return *number;
  return unlogged_region(process, address);
}

bool DataRegions::is_stack(pid_t process, std::uint64_t address,
                           std::uint64_t stack_pointer) const {
  const MappedRange* range = processes_.find(process, stack_pointer);
  if (range != processes_.find(process, address)) return false;
  const bool is_named = range != nullptr && processes_.names()[range->name] == "[stack]";
  const std::uint64_t farthest = is_named ? max_stack : max_unnamed_stack;
  return address + red_zone >= stack_pointer && address < stack_pointer + farthest;
}

std::uint32_t DataRegions::site_region(pid_t process, alloclog::SiteReference reference,
                                       trace::SiteKind kind) {
  const SiteKey key{reference.image, reference.number};
  if (const auto known = sites_.find(key); known != sites_.end()) return known->second;
  DataRegion made = of_kind(kind);
  if (const auto site = log_->site(reference))
    for (const std::uint64_t address : site->chain)
      if (const auto place = processes_.place(process, address))
        made.frames.push_back({place->file, place->offset});
  const std::uint32_t number = number_of_region(std::move(made));
  sites_.emplace(key, number);
  return number;
}

std::uint32_t DataRegions::mapped_region(pid_t process, const alloclog::MappedBlock& block) {
  const std::uint32_t site = site_region(process, block.site, trace::SiteKind::mapping);
  DataRegion made = of_kind(trace::SiteKind::mapping);
  made.frames = regions_[site].frames;
  made.begin = block.begin;
  made.bytes = block.bytes;
  return number_of_region(std::move(made));
}

/// The region of data that was freed or unmapped between a sample and its reading.
std::optional<std::uint32_t> DataRegions::freed_region(pid_t process, std::uint64_t address) {
  if (!log_) return std::nullopt;
  if (const auto site = log_->find_freed(process, address))
    return site_region(process, *site, trace::SiteKind::heap);
  if (const auto block = log_->find_unmapped(process, address))
    return mapped_region(process, *block);
  return std::nullopt;
}

/// Memory that the log does not have.
std::uint32_t DataRegions::unlogged_region(pid_t process, std::uint64_t address) {
  DataRegion made = of_kind(trace::SiteKind::mapping);
  const MappedRange* range = processes_.find(process, address);
  if (range == nullptr) return number_of_region(std::move(made));
  if (is_own(processes_.files()[range->file].path)) return 0;
  made.name = range->name;
  if (range->file != 0) made.frames = {{range->file, 0}};
  if (processes_.files()[range->file].elf) made.kind = trace::SiteKind::statics;
  if (const auto data = processes_.static_data(process, address)) {
    if (is_own(processes_.files()[data->file].path)) return 0;
    made.kind = trace::SiteKind::statics;
    made.frames = {{data->file, 0}};
    made.begin = data->begin;
    made.bytes = data->end - data->begin;
  }
  return number_of_region(std::move(made));
}

std::uint32_t DataRegions::number_of_region(DataRegion place) {
  Key key{place.kind, {}, place.begin, place.bytes, place.name};
  for (const DataRegion::Frame& frame : place.frames)
    key.frames.emplace_back(frame.file, frame.offset);
  const auto [known, is_new] =
      numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(regions_.size()));
  if (is_new) regions_.push_back(std::move(place));
  return known->second;
}

void DataRegions::Totals::add(const Totals& more) {
  allocations += more.allocations;
  allocated_bytes += more.allocated_bytes;
  peak_bytes += more.peak_bytes;
  live_bytes += more.live_bytes;
}

std::map<std::uint32_t, DataRegions::Totals>
DataRegions::totals_of(const alloclog::ProcessImage& image) {
  std::map<std::uint32_t, Totals> totals;
  for (const alloclog::Site& site : log_->sites(image.number)) {
    if (site.allocations == 0) continue; // whether it allocates or maps is not known yet
    const auto kind = site.is_mapping ? trace::SiteKind::mapping : trace::SiteKind::heap;
    totals[site_region(image.pid, {image.number, site.number}, kind)].add(
        {rounded(site.allocations), rounded(site.allocated_bytes), rounded(site.peak_live_bytes),
         image.has_ended ? 0 : rounded(site.live_bytes)});
  }
  return totals;
}

void DataRegions::note_sizes(std::uint64_t time_ns) {
  if (!log_) return;
  std::map<std::uint32_t, Totals> running;
  for (const alloclog::ProcessImage& image : log_->images()) {
    if (image.has_ended && !read_to_end_.insert(image.number).second) continue;
    for (const auto& [number, totals] : totals_of(image))
      (image.has_ended ? ended_ : running)[number].add(totals);
  }
  for (std::uint32_t number = 0; number < regions_.size(); ++number) {
    const auto ended = ended_.find(number);
    const auto live = running.find(number);
    if (ended == ended_.end() && live == running.end()) continue;
    Totals totals = ended == ended_.end() ? Totals{} : ended->second;
    if (live != running.end()) totals.add(live->second);
    DataRegion& place = regions_[number];
    place.allocations = totals.allocations;
    place.allocated_bytes = totals.allocated_bytes;
    place.peak_bytes = totals.peak_bytes;
    if (place.held.empty() || place.held.back().bytes != totals.live_bytes)
      place.held.push_back({time_ns, totals.live_bytes});
  }
}

} // namespace nearfar::sample
