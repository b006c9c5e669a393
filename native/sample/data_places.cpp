#include "sample/data_places.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace nearfar::sample {

namespace {

/// Distance of a stack's data from the stack pointer: below it a red zone, above it all callers.
constexpr std::uint64_t red_zone = 4096;
constexpr std::uint64_t most_stack = 8 << 20;

/// Memory of the allocation log, which the program accesses in its place.
constexpr std::string_view own_memory = "/memfd:nearfar-";

std::uint64_t rounded(double value) {
  return value > 0 ? static_cast<std::uint64_t>(std::llround(value)) : 0;
}

} // namespace

std::uint32_t DataPlaces::number_of(pid_t process, std::uint64_t address,
                                    std::uint64_t stack_pointer) {
  if (log_)
    if (const auto site = log_->find(process, address)) return heap_place(process, *site);
  if (is_stack(process, address, stack_pointer)) return place_of(trace::SiteKind::stack, {});
  const MappedRange* range = processes_.find(process, address);
  if (range == nullptr || range->file == 0) return place_of(trace::SiteKind::mapping, {});
  if (processes_.files()[range->file].path.starts_with(own_memory)) return 0;
  return place_of(trace::SiteKind::statics, {{range->file, 0}});
}

bool DataPlaces::is_stack(pid_t process, std::uint64_t address, std::uint64_t stack_pointer) const {
  return address + red_zone >= stack_pointer && address < stack_pointer + most_stack &&
         processes_.find(process, address) == processes_.find(process, stack_pointer);
}

std::uint32_t DataPlaces::heap_place(pid_t process, alloclog::SiteReference reference) {
  const SiteKey key{reference.image, reference.number};
  if (const auto known = sites_.find(key); known != sites_.end()) return known->second;
  std::vector<DataPlace::Frame> frames;
  if (const auto site = log_->site(reference))
    for (const std::uint64_t address : site->chain)
      if (const auto place = processes_.place(process, address))
        frames.push_back({place->file, place->offset});
  const std::uint32_t number = place_of(trace::SiteKind::heap, std::move(frames));
  sites_.emplace(key, number);
  return number;
}

std::uint32_t DataPlaces::place_of(trace::SiteKind kind, std::vector<DataPlace::Frame> frames) {
  Key key{kind, {}};
  for (const DataPlace::Frame& frame : frames)
    key.frames.emplace_back(frame.file, frame.offset);
  const auto [known, is_new] =
      numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(places_.size()));
  if (!is_new) return known->second;
  DataPlace& made = places_.emplace_back();
  made.kind = kind;
  made.frames = std::move(frames);
  return known->second;
}

void DataPlaces::note_sizes(std::uint64_t time_ns) {
  if (!log_) return;
  std::vector<std::uint64_t> live(places_.size());
  std::vector<DataPlace> totals(places_.size());
  for (const alloclog::ProcessImage& image : log_->images())
    for (const alloclog::Site& site : log_->sites(image.number)) {
      const std::uint32_t number = heap_place(image.pid, {image.number, site.number});
      live.resize(places_.size());
      totals.resize(places_.size());
      live[number] += image.has_ended ? 0 : rounded(site.live_bytes);
      totals[number].allocations += rounded(site.allocations);
      totals[number].allocated_bytes += rounded(site.allocated_bytes);
      totals[number].peak_bytes += rounded(site.peak_live_bytes);
    }
  for (std::size_t i = 0; i < places_.size(); ++i) {
    DataPlace& place = places_[i];
    if (place.kind != trace::SiteKind::heap) continue;
    place.allocations = totals[i].allocations;
    place.allocated_bytes = totals[i].allocated_bytes;
    place.peak_bytes = totals[i].peak_bytes;
    if (place.held.empty() || place.held.back().bytes != live[i])
      place.held.push_back({time_ns, live[i]});
  }
}

} // namespace nearfar::sample
