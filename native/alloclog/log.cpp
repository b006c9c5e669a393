#include "alloclog/log.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "alloclog/lookup.hpp"
#include "alloclog/slots.hpp"
#include "os/address_space.hpp"
#include "os/process.hpp"

namespace nearfar::alloclog {

namespace {

constexpr std::size_t deepest = 16; ///< forks that a look-up follows

/// Start time of a process, in clock ticks since boot; empty if it has ended.
std::optional<std::uint64_t> start_time(pid_t pid) {
  constexpr int fields_before = 20; // from the state, which is the third, to the 22nd
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  char text[1024];
  if (!os::read_text(path, text, sizeof text)) return std::nullopt;
  const char* at = std::strrchr(text, ')'); // the name of a program may have parentheses
  if (at == nullptr || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') return std::nullopt;
  for (int i = 0; i < fields_before && at != nullptr; ++i)
    at = std::strchr(at + 1, ' ');
  if (at == nullptr) return std::nullopt;
  return std::strtoull(at, nullptr, 10);
}

struct Image {
  SlotFile file;
  std::uint32_t slot;
  pid_t pid;
  std::optional<std::uint64_t> started; ///< of the process; empty: ended
  SlotUse parent;
  Mappings mappings;
  std::uint64_t clock_taken = 0; ///< number of the last clock sample
  bool is_complete = false;      ///< it has ended, and its mappings are followed to the end
  bool is_released = false;
};

void add_totals(Site& site, const MappingTotals& mapped) {
  site.is_mapping = true;
  site.allocations += static_cast<double>(mapped.calls);
  site.allocated_bytes += static_cast<double>(mapped.bytes);
  site.live_bytes += static_cast<double>(mapped.live_bytes);
  site.peak_live_bytes += static_cast<double>(mapped.peak_live_bytes);
}

/// Empty if there is no such site.
std::optional<Site> site_from(Entry number, const SiteRecord& record, const Mappings& mappings) {
  if (record.chain[0] == 0 && number != other_sites) return std::nullopt;
  Site site{number,
            {},
            static_cast<double>(record.allocations) / allocation_unit,
            static_cast<double>(record.allocated_bytes),
            static_cast<double>(std::max<std::int64_t>(record.live_bytes, 0)),
            static_cast<double>(std::max<std::int64_t>(record.peak_live_bytes, 0)),
            false};
  for (const std::uint64_t caller : record.chain) {
    if (caller == 0) break;
    site.chain.push_back(caller);
  }
  if (const auto* mapped = mappings.totals(number)) add_totals(site, *mapped);
  return site;
}

} // namespace

struct AllocationLog::Implementation {
  std::unique_ptr<Slots> slots;
  std::uint32_t ready_slots;
  std::map<ImageNumber, Image> images;
  ImageNumber last = 0;
  std::uint64_t lost_blocks_of_released = 0;
  std::uint64_t lost_clock_samples = 0;

  const std::pair<const ImageNumber, Image>* by_use(SlotUse use) const;
  /// The last image of a process.
  const std::pair<const ImageNumber, Image>* by_process(pid_t pid) const;
  void add(Slots::Joined joined);
  void mark_ended();
  bool has_child(SlotUse use) const;
  ProcessImage description(ImageNumber number, const Image& image) const;
  void free_released();
  std::optional<SiteReference> find(pid_t pid, std::uint64_t address, Blocks which) const;
};

const std::pair<const ImageNumber, Image>*
AllocationLog::Implementation::by_use(SlotUse use) const {
  for (const auto& entry : images)
    if (use != 0 && entry.second.file.self() == use) return &entry;
  return nullptr;
}

const std::pair<const ImageNumber, Image>*
AllocationLog::Implementation::by_process(pid_t pid) const {
  const std::pair<const ImageNumber, Image>* last_image = nullptr;
  for (const auto& entry : images)
    if (entry.second.pid == pid && !entry.second.is_released) last_image = &entry;
  return last_image;
}

void AllocationLog::Implementation::add(Slots::Joined joined) {
  for (auto& [number, image] : images)
    if (image.pid == joined.pid) image.started.reset();
  const SlotUse use = joined.file.header().parent;
  const auto* parent = by_use(use);
  Mappings mappings =
      parent == nullptr ? Mappings() : Mappings::forked_from(parent->second.mappings);
  images.emplace(++last, Image{std::move(joined.file), joined.index, joined.pid,
                               start_time(joined.pid), use, std::move(mappings)});
}

void AllocationLog::Implementation::mark_ended() {
  for (auto& [number, image] : images)
    if (image.started && start_time(image.pid) != image.started) image.started.reset();
}

bool AllocationLog::Implementation::has_child(SlotUse use) const {
  return std::ranges::any_of(images, [&](const auto& entry) { return entry.second.parent == use; });
}

ProcessImage AllocationLog::Implementation::description(ImageNumber number,
                                                        const Image& image) const {
  const auto* parent = by_use(image.parent);
  return {number, image.pid, parent == nullptr ? std::nullopt : std::optional(parent->first),
          !image.started.has_value()};
}

void AllocationLog::Implementation::free_released() {
  for (auto entry = images.begin(); entry != images.end();) {
    const Image& image = entry->second;
    if (!image.is_released || has_child(image.file.self())) {
      ++entry;
      continue;
    }
    const std::uint32_t slot = image.slot;
    images.erase(entry);
    slots->free(slot);
    entry = images.begin(); // its parent may be free now
  }
}

AllocationLog::AllocationLog(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
AllocationLog::AllocationLog(AllocationLog&&) noexcept = default;
AllocationLog& AllocationLog::operator=(AllocationLog&&) noexcept = default;
AllocationLog::~AllocationLog() = default;

Result<AllocationLog> AllocationLog::create(std::uint32_t ready_slots,
                                            std::uint32_t clock_period_ns) {
  // A page of a sparse file may then be missing when it is written to, which kills the program.
  if (os::strict_overcommit())
    return Error::make(Errc::unsupported, "no allocation log where memory is not overcommitted")
        .try_next("sysctl vm.overcommit_memory=0");
  auto slots = Slots::create(clock_period_ns);
  if (!slots) return slots.error();
  if (Status ready = (*slots)->make_ready(ready_slots); !ready) return ready.error();
  auto implementation = std::make_unique<Implementation>();
  implementation->slots = std::move(*slots);
  implementation->ready_slots = ready_slots;
  return AllocationLog(std::move(implementation));
}

std::string AllocationLog::variable_value() const { return implementation_->slots->path(); }

void AllocationLog::poll() {
  Implementation& log = *implementation_;
  log.mark_ended();
  std::vector<Slots::Joined> joined = log.slots->take_joined();
  std::ranges::sort(joined, {}, [](const Slots::Joined& each) { return each.file.header().order; });
  for (Slots::Joined& each : joined)
    log.add(std::move(each));
  for (auto& [number, image] : log.images) {
    if (image.is_complete) continue;
    image.mappings.follow(image.file, number);
    image.is_complete = !image.started;
  }
  // Without more descriptors there are fewer slots, and processes that are counted as lost.
  (void)log.slots->make_ready(log.ready_slots);
}

void AllocationLog::take_clock_samples(
    const std::function<void(const ProcessImage&, const ClockSample&)>& visit) {
  for (auto& [number, image] : implementation_->images) {
    const std::uint64_t count = image.file.header().clock_count;
    if (count > image.clock_taken && count - image.clock_taken > clock_samples) {
      implementation_->lost_clock_samples += count - image.clock_taken - clock_samples;
      image.clock_taken = count - clock_samples;
    }
    if (image.clock_taken >= count) continue;
    const ProcessImage described = implementation_->description(number, image);
    while (image.clock_taken < count) {
      const std::optional<ClockSample> sample = image.file.clock_sample(image.clock_taken + 1);
      if (!sample) break; // it is being written
      visit(described, *sample);
      ++image.clock_taken;
    }
  }
}

void AllocationLog::release(ImageNumber number) {
  const auto entry = implementation_->images.find(number);
  if (entry == implementation_->images.end()) return;
  entry->second.is_released = true;
  implementation_->lost_blocks_of_released += entry->second.file.header().lost_tracked;
  implementation_->free_released();
}

std::vector<ProcessImage> AllocationLog::images() const {
  std::vector<ProcessImage> result;
  for (const auto& [number, image] : implementation_->images) {
    if (!image.is_released) result.push_back(implementation_->description(number, image));
  }
  return result;
}

std::optional<SiteReference> AllocationLog::Implementation::find(pid_t pid, std::uint64_t address,
                                                                 Blocks which) const {
  const std::pair<const ImageNumber, Image>* at = by_process(pid);
  std::vector<const SlotFile*> logs;
  std::vector<ImageNumber> numbers;
  for (; at != nullptr && logs.size() < deepest; at = by_use(at->second.parent)) {
    logs.push_back(&at->second.file);
    numbers.push_back(at->first);
  }
  const auto found = look_up(logs, address, which);
  if (!found) return std::nullopt;
  return SiteReference{numbers[found->log], found->site};
}

std::optional<SiteReference> AllocationLog::find(pid_t pid, std::uint64_t address) const {
  return implementation_->find(pid, address, Blocks::in_use);
}

std::optional<SiteReference> AllocationLog::find_freed(pid_t pid, std::uint64_t address) const {
  return implementation_->find(pid, address, Blocks::also_freed);
}

std::optional<MappedBlock> AllocationLog::find_mapping(pid_t pid, std::uint64_t address) const {
  const auto* image = implementation_->by_process(pid);
  return image == nullptr ? std::nullopt : image->second.mappings.find(address);
}

std::optional<MappedBlock> AllocationLog::find_unmapped(pid_t pid, std::uint64_t address) const {
  const auto* image = implementation_->by_process(pid);
  return image == nullptr ? std::nullopt : image->second.mappings.find_unmapped(address);
}

std::optional<Site> AllocationLog::site(SiteReference reference) const {
  const auto entry = implementation_->images.find(reference.image);
  if (entry == implementation_->images.end()) return std::nullopt;
  SiteRecord record{};
  entry->second.file.sites(reference.number, {&record, 1});
  return site_from(reference.number, record, entry->second.mappings);
}

std::vector<Site> AllocationLog::sites(ImageNumber image) const {
  std::vector<Site> result;
  const auto entry = implementation_->images.find(image);
  if (entry == implementation_->images.end()) return result;
  std::vector<SiteRecord> records(entry->second.file.last_site());
  entry->second.file.sites(1, records);
  for (std::size_t i = 0; i < records.size(); ++i)
    if (auto found = site_from(static_cast<Entry>(i + 1), records[i], entry->second.mappings))
      result.push_back(std::move(*found));
  if (auto others = site({image, other_sites}); others && others->allocations > 0)
    result.push_back(std::move(*others));
  return result;
}

std::uint64_t AllocationLog::slow_lookups(ImageNumber image) const {
  const auto entry = implementation_->images.find(image);
  return entry == implementation_->images.end() ? 0 : entry->second.file.header().slow_lookups;
}

Lost AllocationLog::lost() const {
  Lost lost{implementation_->slots->lost_processes(), implementation_->lost_blocks_of_released, 0,
            implementation_->lost_clock_samples};
  for (const auto& [number, image] : implementation_->images) {
    if (!image.is_released) lost.tracked_blocks += image.file.header().lost_tracked;
    lost.mapping_events += image.mappings.lost();
  }
  return lost;
}

} // namespace nearfar::alloclog
