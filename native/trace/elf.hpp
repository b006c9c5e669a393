// Segments and build ID of an ELF file.
//
// Untrusted      the file may have any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nearfar::trace {

struct Elf {
  struct Segment {
    std::uint64_t offset;  ///< in the file
    std::uint64_t address; ///< in the file's own addresses
    std::uint64_t bytes;   ///< in memory
    bool is_writable;
  };
  std::vector<Segment> segments; ///< those that are loaded
  std::string build_id;          ///< in hex

  /// Load bias: the loader's addition to the file's addresses, if `offset` was mapped to `address`.
  std::optional<std::uint64_t> bias(std::uint64_t address, std::uint64_t offset) const;
  /// Addresses of the writable data, rounded to whole pages.
  struct Addresses {
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::optional<Addresses> writable() const;
  /// The lowest and the end of the highest address in the file's own.
  std::uint64_t low() const;
  std::uint64_t high() const;
};

/// Nothing if it cannot be read or is not a 64-bit ELF file.
std::optional<Elf> read_elf(const char* path);

} // namespace nearfar::trace
