// Events of persistent memory, and places in a program where they happened.
//
// Purpose        shared by the code that stores and by crash exploration.
// Units          addresses and sizes are bytes; in a log, addresses count from the pool's start.
// Thread safety  values, no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nearfar::storelog {

inline constexpr std::size_t line_bytes = 64; ///< the unit of a flush, on every x86 processor

inline constexpr int hosts = 2; ///< most that share a pool

/// Thread number of a change that no thread of the program stored: another process, or write().
inline constexpr std::uint16_t no_thread = UINT16_MAX;

/// Kind of an event. The numbers are those of the file format (docs/formats/storelog.md).
enum class EventKind : std::uint8_t {
  store = 1,    ///< bytes were stored through the caches; they require a flush and a fence
  nt_store = 2, ///< a non-temporal store, which requires a fence
  flush = 3,    ///< write-back of lines was requested; durable after the next fence
  fence = 4,    ///< sfence: flushes and non-temporal stores of this thread are durable
  log = 5,      ///< a range was passed to a log (undo or redo) before it is overwritten
  begin = 6,    ///< an operation begins; `address` is its number
  end = 7,      ///< an operation is acknowledged; `address` is its number
  tx_begin = 8, ///< this thread begins a transaction; nested ones are part of it
  tx_end = 9,   ///< it has committed or aborted
  load = 10,    ///< bytes were read, in a program of two hosts: the line leaves the other's caches
};

/// A place in a program: a source line, or, if only machine code is known, an offset in an ELF
/// file. It may have a caller: the call that led there, which may have one, too. A value; nothing
/// is allocated.
class Site {
public:
  constexpr Site() = default;
  constexpr Site(const char* file, std::uint64_t line) : file_(file), place_(line) {}

  /// The line that calls the function of which this is a default argument. (GCC 12 and clang 14
  /// both evaluate nested default arguments there; clang 14 has no std::source_location.)
  static constexpr Site current(const char* file = __builtin_FILE(),
                                unsigned line = __builtin_LINE()) {
    return {file, line};
  }
  /// `offset` bytes into the ELF file `module`.
  static constexpr Site code(const char* module, std::uint64_t offset) {
    return {module, offset | code_bit};
  }

  /// Code that is not known.
  static constexpr Site unknown() { return {"unknown", 0}; }
  constexpr bool is_unknown() const {
    return place_ == 0 && std::string_view(file_) == unknown().file();
  }

  /// The same place, reached by a call at `caller`, which outlives it.
  constexpr Site called_from(const Site& caller) const {
    Site site = *this;
    site.caller_ = &caller;
    return site;
  }

  constexpr const char* file() const { return file_; } ///< source, or ELF file if is_code()
  constexpr bool is_code() const { return (place_ & code_bit) != 0; }
  constexpr std::uint64_t line() const { return is_code() ? 0 : place_; }
  constexpr std::uint64_t offset() const { return is_code() ? place_ & ~code_bit : 0; }
  constexpr std::uint64_t place() const { return place_; } ///< line or marked offset, as in files
  constexpr const Site* caller() const { return caller_; } ///< or null

  /// Compares the file by pointer: sites of one line in one binary have the same one.
  friend constexpr bool operator==(const Site&, const Site&) = default;

private:
  static constexpr std::uint64_t code_bit = std::uint64_t{1} << 63;
  const char* file_ = "";
  std::uint64_t place_ = 0;
  const Site* caller_ = nullptr;
};

/// One event. `data` is the index of its bytes in Log::data (stores only).
struct Event {
  EventKind kind = EventKind::fence;
  std::uint16_t thread = 0; ///< small numbers in order of appearance
  std::uint32_t bytes = 0;
  std::uint64_t address = 0; ///< from the start of the pool; an operation's number for begin, end
  std::uint64_t data = 0;
  Site site;
  std::uint8_t host = 0; ///< of the thread, in a program of two hosts
};

/// Whether it stored bytes, so that it has data.
inline bool stores(const Event& event) {
  return event.kind == EventKind::store || event.kind == EventKind::nt_store;
}

/// Whether events of this kind refer to bytes of the pool. Fences, operations and transactions do
/// not.
inline bool has_range(EventKind kind) {
  return kind != EventKind::fence && (kind < EventKind::begin || kind > EventKind::tx_end);
}

/// Number of lines that [at, at + bytes) touches.
inline std::uint64_t lines_of(const void* at, std::size_t bytes) {
  if (bytes == 0) return 0;
  const auto first = reinterpret_cast<std::uintptr_t>(at);
  return (first + bytes - 1) / line_bytes - first / line_bytes + 1;
}

} // namespace nearfar::storelog
