// Regions of data at the addresses of samples: blocks of allocation sites, mappings of call sites,
// other mappings, data of files, stacks.
//
// Time           blocks are freed and reused: an address must be looked up soon after its sample.
// Sites          the same call chain in several processes of one program is one region.
// Thread safety  none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

#include "alloclog/log.hpp"
#include "sample/process_map.hpp"
#include "sample/samples.hpp"

namespace nearfar::sample {

class DataRegions {
public:
  /// `log` may be absent.
  DataRegions(const ProcessMap& processes, const std::optional<alloclog::AllocationLog>& log)
      : processes_(processes), log_(log), regions_(1) {}

  /// Whether the log has data at an address. The kernel does not report memory that mremap() moves,
  /// as in realloc(): only the log has such blocks.
  bool is_logged(pid_t process, std::uint64_t address) const;

  /// Index of the region at an address, at the time of a sample with this stack pointer. 0:
  /// unknown.
  std::uint32_t number_of(pid_t process, std::uint64_t address, std::uint64_t stack_pointer);

  /// Adds the live bytes of each site of the log at a time to `held`.
  void note_sizes(std::uint64_t time_ns);
  std::span<const DataRegion> all() const { return regions_; }

private:
  struct Key {
    trace::SiteKind kind;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> frames;
    std::uint64_t begin;
    std::uint64_t bytes;
    std::uint32_t name;
    auto operator<=>(const Key&) const = default;
  };
  using SiteKey = std::pair<alloclog::ImageNumber, std::uint16_t>;

  /// Totals that the sites of an image add to regions, as of the last reading.
  struct Totals {
    std::uint64_t allocations = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t peak_bytes = 0;
    std::uint64_t live_bytes = 0;
    void add(const Totals& more);
  };

  std::uint32_t site_region(pid_t process, alloclog::SiteReference site, trace::SiteKind kind);
  std::uint32_t mapped_region(pid_t process, const alloclog::MappedBlock& block);
  std::optional<std::uint32_t> freed_region(pid_t process, std::uint64_t address);
  std::uint32_t unlogged_region(pid_t process, std::uint64_t address);
  std::uint32_t number_of_region(DataRegion place);
  std::map<std::uint32_t, Totals> totals_of(const alloclog::ProcessImage& image);
  bool is_stack(pid_t process, std::uint64_t address, std::uint64_t stack_pointer) const;

  const ProcessMap& processes_;
  const std::optional<alloclog::AllocationLog>& log_;
  std::vector<DataRegion> regions_;
  std::map<Key, std::uint32_t> numbers_;
  std::map<SiteKey, std::uint32_t> sites_; ///< regions of the log's sites
  std::map<std::uint32_t, Totals> ended_;  ///< by region, of images that have ended
  std::set<alloclog::ImageNumber> read_to_end_;
};

} // namespace nearfar::sample
