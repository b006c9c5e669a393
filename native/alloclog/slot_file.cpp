#include "alloclog/slot_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nearfar::alloclog {

Result<SlotFile> SlotFile::create(SlotUse self) {
  auto file = os::create_sized_in_memory("nearfar-allocation-log", slot_bytes);
  if (!file) return file.error();
  SlotHeader header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.version = version;
  header.self = self;
  if (os::write_whole(file->fd(), &header, sizeof header)) return SlotFile(std::move(*file), self);
  return Error::make(Errc::no_space, "cannot write the allocation log: %s", std::strerror(errno));
}

void SlotFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  const std::size_t got = os::read_at(file_, offset, to, bytes);
  std::memset(static_cast<std::byte*>(to) + got, 0, bytes - got);
}

SlotHeader SlotFile::header() const {
  SlotHeader header{};
  read(0, &header, sizeof header);
  return header;
}

void SlotFile::entries(const Level& level, std::uint64_t first, std::span<Entry> result) const {
  std::ranges::fill(result, Entry{0});
  const std::uint64_t count = alloclog::entries(level.bits);
  if (first >= count) return;
  const std::size_t inside = std::min<std::uint64_t>(result.size(), count - first);
  read(level.offset + first * sizeof(Entry), result.data(), inside * sizeof(Entry));
}

void SlotFile::sites(Entry first, std::span<SiteRecord> result) const {
  std::ranges::fill(result, SiteRecord{});
  if (result.empty() || first == 0 || first > other_sites) return;
  const std::size_t inside = std::min<std::size_t>(result.size(), other_sites - first + 1u);
  read(sites_offset + first * sizeof(SiteRecord), result.data(), inside * sizeof(SiteRecord));
}

std::optional<MappingEvent> SlotFile::mapping_event(std::uint64_t number) const {
  MappingEvent event{};
  read(mappings_offset + number % mapping_events * sizeof event, &event, sizeof event);
  return event.number == number ? std::optional(event) : std::nullopt;
}

std::optional<ClockSample> SlotFile::clock_sample(std::uint64_t number) const {
  ClockSample sample{};
  read(clock_offset + number % clock_samples * sizeof sample, &sample, sizeof sample);
  return sample.number == number ? std::optional(sample) : std::nullopt;
}

Entry SlotFile::last_site() const {
  return static_cast<Entry>(std::min<std::uint32_t>(header().site_count, other_sites - 1u));
}

} // namespace nearfar::alloclog
