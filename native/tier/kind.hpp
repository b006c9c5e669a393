// A kind of tiers: one file in kinds/ for each, found by CMake. The file defines NAME_kind, and no
// other file lists it:
//
//     const TierKind dram_kind = {.name = "dram", .form = "dram", .capacity = free_memory};
//
// All other code asks what a kind can do, not which kind it is.
//
// Freestanding   no exceptions, no std::string, no constructors that run.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.hpp"
#include "os/file.hpp"
#include "os/pages.hpp"

namespace nearfar::tier {

struct Spec;

/// Memory that mappings of a tier have.
enum class Maps : unsigned char {
  memory, ///< anonymous
  file,   ///< a file without a name, as large as the mapping
  device, ///< parts of a device, each claimed by the caller that maps it
};

/// Operations that make a store durable.
enum class Persists : unsigned char {
  nothing,  ///< it is gone
  emulated, ///< nothing either, but the kind emulates one where flushes do
  by_flush, ///< flushes of lines and a fence; of files under MAP_SYNC
  by_msync,
};

struct TierKind {
  const char* name; ///< before the colon
  const char* form; ///< in the grammar, "numa:N"
  Maps maps = Maps::memory;
  Persists persists = Persists::nothing;
  bool prefaults = false; ///< tier::map() touches every page, asked or not; heaps do by chunk

  /// Parses the text after the colon, which may be empty, and stores it in the spec. Without this
  /// function the kind takes no argument. Errors: bad_input, by way of refuse().
  Status (*read)(std::string_view argument, Spec& spec) = nullptr;
  /// Room for this user now, in bytes. Errors: unsupported (this machine has no such tier), those
  /// of the place.
  Result<std::size_t> (*capacity)(const Spec& spec);
  /// The file or device to be mapped; not for memory.
  Result<os::File> (*open)(const Spec& spec) = nullptr;
  /// Unit in which a device can be mapped, in bytes; for devices only.
  Result<std::size_t> (*unit)(const Spec& spec) = nullptr;
  /// Sets the node of the pages, before any is touched; without it the kernel decides.
  Status (*bind)(const Spec& spec, const os::MappedRange& range) = nullptr;

  bool map_sync() const { return maps == Maps::file && persists == Persists::by_flush; }
  /// Whether its contents are lost without power, even if it emulates persistent memory.
  bool loses_all() const { return persists == Persists::nothing || persists == Persists::emulated; }
};

/// The kind of that name, or null.
const TierKind* find_kind(std::string_view name);

/// The error bad_input: the complaint, the wrong part, and the grammar.
Error refuse(const char* complaint, std::string_view part);

/// For kinds that name a path: TierKind::read. Errors: bad_input (none, or too long).
Status read_path(std::string_view argument, Spec& spec);

/// For kinds whose path is a directory: TierKind::capacity, of its file system, and TierKind::open,
/// a file without a name.
Result<std::size_t> free_space(const Spec& spec);
Result<os::File> create_unnamed(const Spec& spec);

} // namespace nearfar::tier
