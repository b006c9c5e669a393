// Errors that were found in a pool: place and text.
//
// Thread safety  values, no shared state.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <string>
#include <vector>

#include "inspect/layout.hpp"

namespace nearfar::inspect {

enum class Severity : unsigned char {
  note,   ///< worth knowing; the pool is consistent
  damage, ///< the pool is not what its own fields say, or cannot be opened
};

struct Finding {
  Severity severity;
  /// Of libpmemobj's format: "header", "descriptor", "lane", "heap", "run", "object", "root". Of
  /// nearfar's (poolformat/heads.hpp): "nearfar" for the PoolHead, "store" for the StoreHead,
  /// "types", "log", "directory", "chunk"; "link" for one between objects.
  const char* part;
  Offset offset;    ///< in the file, of the bytes that are wrong
  std::string text; ///< a sentence without a full stop
};

/// Keeps the first ones and counts all: a hostile file must not exhaust memory.
class Findings {
public:
  static constexpr std::size_t kept_at_most = 200;

  [[gnu::format(printf, 4, 5)]] void damage(const char* part, Offset offset, const char* format,
                                            ...);
  [[gnu::format(printf, 4, 5)]] void note(const char* part, Offset offset, const char* format, ...);
  /// Adds a failure of read(): the file was truncated, or is unreadable there.
  void unreadable(const char* part, Offset offset, std::size_t bytes);

  const std::vector<Finding>& kept() const { return kept_; }
  std::uint64_t damage_count() const { return damage_; }
  std::uint64_t note_count() const { return notes_; }

private:
  void keep(Severity severity, const char* part, Offset offset, const char* format,
            std::va_list arguments);

  std::vector<Finding> kept_;
  std::uint64_t damage_ = 0;
  std::uint64_t notes_ = 0;
};

} // namespace nearfar::inspect
