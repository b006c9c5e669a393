// The recording that goes on, and how an event becomes a record of its log or a step of the judge.
//
// Thread safety  the lock of the log is held (lock.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "crash/runtime/recording.hpp"
#include "crash/runtime/sites.hpp"
#include "storelog/log_file.hpp"

namespace nearfar::crash::runtime {

struct Recording {
  storelog::LogWriter* writer = nullptr; ///< null: nothing is recorded yet, or any longer
  char* shadow = nullptr;                ///< the pool as the log has it; null if it is only judged
  std::uint64_t pool_bytes = 0;
  std::uint64_t unseen = 0;  ///< bytes that changed and were not recorded (coverage.hpp)
  bool has_children = false; ///< processes that the program started
};
extern Recording recording;

/// Who changes a file by write() before it is mapped, or in another process.
inline constexpr Author outside{storelog::no_thread, 0};

/// Without a site, it is one of unknown code. `changes`: false for a store of bytes that were there.
void put(EventKind kind, Author who, std::uint64_t address, std::size_t bytes, const void* data,
         std::optional<SiteNumber> site, bool changes = true);

/// A store that was made already: takes its bytes from memory and updates the shadow.
void put_store(EventKind kind, Author who, const void* at, std::size_t bytes, SiteNumber site);
/// After a store that was judged before it was made: updates only the bytes that coverage.hpp keeps.
void keep_store(const void* at, std::size_t bytes);

/// A store by an instruction: the bytes of the pool that it writes, and where it is.
struct Stored {
  std::uint64_t begin = 0, end = ~std::uint64_t{0};
  std::optional<SiteNumber> site = {};
  bool all = true; ///< see NamedBytes

  /// Another thread stored what changed there while the page was open for this instruction, or
  /// another process or a call that is not seen did since the shadow was right.
  bool is_of_another(std::uint64_t at) const;
  /// Where the bytes from `at` on are of another, or no longer are.
  std::uint64_t end_of_part(std::uint64_t at) const;
  /// The judge gets all bytes that the instruction writes, also those that it does not change.
  bool is_judged_whole(std::uint64_t from, std::uint64_t to) const;
};

/// Records what changed in [offset, offset + bytes) of the pool since the shadow was last right, and
/// returns how many bytes that were.
std::size_t compare(const char* now, std::uint64_t offset, std::size_t bytes, EventKind kind,
                    Author who, const Stored& stored);

} // namespace nearfar::crash::runtime
