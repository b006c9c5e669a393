// What lies at the addresses of samples: blocks of allocation sites, stacks, globals, mappings.
//
// Time           blocks come and go: an address must be looked up soon after its sample.
// Sites          the same call chain in several processes of one program is one place.
// Thread safety  none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

#include "alloclog/log.hpp"
#include "sample/process_map.hpp"
#include "sample/samples.hpp"

namespace nearfar::sample {

class DataPlaces {
public:
  /// `log` may be absent.
  DataPlaces(const ProcessMap& processes, const std::optional<alloclog::AllocationLog>& log)
      : processes_(processes), log_(log), places_(1) {}

  /// The number of what lies at an address, at the time of a sample with this stack pointer. 0 if
  /// nothing is known.
  std::uint32_t number_of(pid_t process, std::uint64_t address, std::uint64_t stack_pointer);

  /// Adds how much is live at each heap site to `held`, at a time.
  void note_sizes(std::uint64_t time_ns);
  std::span<const DataPlace> all() const { return places_; }

private:
  struct Key {
    trace::SiteKind kind;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> frames;
    auto operator<=>(const Key&) const = default;
  };
  using SiteKey = std::pair<alloclog::ImageNumber, std::uint16_t>;

  std::uint32_t heap_place(pid_t process, alloclog::SiteReference site);
  std::uint32_t place_of(trace::SiteKind kind, std::vector<DataPlace::Frame> frames);
  bool is_stack(pid_t process, std::uint64_t address, std::uint64_t stack_pointer) const;

  const ProcessMap& processes_;
  const std::optional<alloclog::AllocationLog>& log_;
  std::vector<DataPlace> places_;
  std::map<Key, std::uint32_t> numbers_;
  std::map<SiteKey, std::uint32_t> sites_; ///< places of sites of the log
};

} // namespace nearfar::sample
