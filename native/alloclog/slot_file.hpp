// A slot of the allocation log in its reader: the file, which is read by copies.
//
// Untrusted      the program may write anything into the file. Every value is copied once and then
//                checked; the size is sealed. Reading a hole allocates nothing.
// Thread safety  const functions by any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "alloclog/format.hpp"
#include "base/result.hpp"
#include "os/file.hpp"

namespace nearfar::alloclog {

/// One of the three arrays of a slot.
struct Level {
  std::uint64_t offset;
  unsigned bits; ///< an entry is for this many bits of the address
};
inline constexpr Level level0 = {level0_offset, granule_bits};
inline constexpr Level level1 = {level1_offset, page_bits};
inline constexpr Level level2 = {level2_offset, unit_bits};

class SlotFile {
public:
  /// Creates an empty slot. Errors: os_error (no descriptor), no_space.
  static Result<SlotFile> create(SlotUse self);

  int fd() const { return file_.fd(); }
  SlotUse self() const { return self_; }

  /// The header as the program left it.
  SlotHeader header() const;
  /// Entries [first, first + size) of a level; zeros behind its end.
  void entries(const Level& level, std::uint64_t first, std::span<Entry> result) const;
  /// Sites [first, first + size); all zero where there are none.
  void sites(Entry first, std::span<SiteRecord> result) const;
  /// A change of mappings by its number, from 1; empty if it is not there (any more).
  std::optional<MappingEvent> mapping_event(std::uint64_t number) const;
  /// A clock sample by its number, from 1; empty if it is not there (any more).
  std::optional<ClockSample> clock_sample(std::uint64_t number) const;
  /// Numbers up to this one may be sites.
  Entry last_site() const;

private:
  SlotFile(os::File file, SlotUse self) : file_(std::move(file)), self_(self) {}
  void read(std::uint64_t offset, void* to, std::size_t bytes) const;

  os::File file_;
  SlotUse self_;
};

} // namespace nearfar::alloclog
