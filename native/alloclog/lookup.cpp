#include "alloclog/lookup.hpp"

#include <array>

namespace nearfar::alloclog {

namespace {

/// The log of the process, and those of its parents.
struct Logs {
  std::span<const SlotFile* const> files;
  Blocks which;

  /// The log that has the site of an entry.
  std::optional<FoundEntry> found(std::size_t log, Entry entry) const {
    const Entry site = entry & site_mask;
    if (site == 0 || site == freed_entry) return std::nullopt;
    if (which == Blocks::in_use && (entry & freed_bit) != 0) return std::nullopt;
    return FoundEntry{log, site};
  }
};

/// The entry of the first log that has one; a block that a child freed is not searched further.
std::optional<FoundEntry> entry_at(const Logs& logs, const Level& level, std::uint64_t index) {
  for (std::size_t i = 0; i < logs.files.size(); ++i) {
    Entry entry = 0;
    logs.files[i]->entries(level, index, {&entry, 1});
    if (entry != 0) return logs.found(i, entry);
  }
  return std::nullopt;
}

/// Without the logs whose blocks at this entry a child has freed: they follow the child's.
Logs not_freed(const Logs& logs, const Level& level, std::uint64_t index) {
  for (std::size_t i = 0; i < logs.files.size(); ++i) {
    Entry entry = 0;
    logs.files[i]->entries(level, index, {&entry, 1});
    const bool was_freed = (entry & site_mask) == freed_entry || (entry & freed_bit) != 0;
    if (entry != 0) return was_freed ? Logs{logs.files.first(i + 1), logs.which} : logs;
  }
  return logs;
}

constexpr std::size_t page_granules = 1 << (page_bits - granule_bits);
using PageGranules = std::array<Entry, page_granules>;

/// The last block of a page that begins at `address` or before.
std::optional<FoundEntry> last_begin(const Logs& logs, std::uint64_t page, std::uint64_t address) {
  PageGranules merged{};
  std::array<std::size_t, page_granules> owner{};
  for (std::size_t i = 0; i < logs.files.size(); ++i) {
    PageGranules own;
    logs.files[i]->entries(level0, page * page_granules, own);
    for (std::size_t g = 0; g < page_granules; ++g)
      if (merged[g] == 0 && own[g] != 0) merged[g] = own[g], owner[g] = i;
  }
  constexpr std::uint64_t half = std::uint64_t{1} << (granule_bits - 1);
  for (std::size_t g = page_granules; g-- > 0;) {
    const std::uint64_t granule = (page * page_granules + g) << granule_bits;
    const std::uint64_t begin = granule + ((merged[g] & half_bit) != 0 ? half : 0);
    if (begin > address) continue;
    if (auto site = logs.found(owner[g], merged[g])) return site;
  }
  return std::nullopt;
}

/// The large block that a page begins in.
std::optional<FoundEntry> large_at(const Logs& logs, std::uint64_t page) {
  if (auto large = entry_at(logs, level1, page)) return large;
  return entry_at(logs, level2, page >> (unit_bits - page_bits));
}

/// A page within a large block. Level 0 may still have blocks that began there before.
std::optional<FoundEntry> within_large(const Logs& logs, std::uint64_t page) {
  const auto large = entry_at(logs, level1, page);
  if (!large) return std::nullopt;
  const auto next = large_at(logs, page + 1);
  return next && next->log == large->log && next->site == large->site ? large : std::nullopt;
}

} // namespace

std::optional<FoundEntry> look_up(std::span<const SlotFile* const> files, std::uint64_t address,
                                  Blocks which) {
  Logs logs{files, which};
  constexpr std::uint64_t farthest = large_bytes >> page_bits; // pages before, of a small block
  if (address >> address_bits != 0) return std::nullopt;
  if (auto unit = entry_at(logs, level2, address >> unit_bits)) return unit;
  logs = not_freed(logs, level2, address >> unit_bits);
  const std::uint64_t page = address >> page_bits;
  if (auto large = within_large(logs, page)) return large;
  for (std::uint64_t back = 0; back <= farthest && back <= page; ++back) {
    if (auto begun = last_begin(logs, page - back, address)) return begun;
    // A large block reaches into this page: what is before it does not reach behind it.
    if (auto large = entry_at(logs, level1, page - back)) return back == 0 ? large : std::nullopt;
  }
  return std::nullopt;
}

} // namespace nearfar::alloclog
