// Inside the program under test: which mapping is its pool, and the log that is written of it.
//
// The pool       the first regular file that the program maps shared and writable. Mapped again, it
//                is still the same pool; another file is not recorded, and standard error says so.
// Thread safety  all members, also in signal handlers: if the program has some, signals are blocked
//                while the spin lock is held.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <sys/types.h>

#include "crash/judge.hpp"
#include "crash/runtime/sites.hpp"
#include "os/address_space.hpp"
#include "storelog/event.hpp"

namespace nearfar::crash::runtime {

using crash::Use;
using storelog::EventKind;

/// How stores are seen.
enum class Seen : std::uint8_t {
  faults,    ///< pages are read-only: every store faults, is stepped over, and is compared
  callbacks, ///< the compiler put a call before every store
};

struct RecordedRegion {
  char* start = nullptr; ///< as the program sees it
  std::size_t bytes = 0;
  std::uint64_t offset = 0; ///< in the pool
  char* alias = nullptr;    ///< the same pages; writable if the program's descriptor is
  bool writable = false;    ///< by the program, but for the pages that are denied
  bool* denied = nullptr;   ///< by page, once the program has changed the rights of some: no stores

  /// Whether the program may store to the page at an offset of the region.
  bool is_writable(std::size_t into) const {
    return writable && (denied == nullptr || !denied[into / os::page_bytes]);
  }
};

/// Where stores are looked for; no region where `count` is 0.
struct Regions {
  static constexpr int most = 16;
  RecordedRegion region[most];
  int count = 0;
};
extern Regions regions;
extern Seen seen;

/// What lies at an offset of a region. The program has just used its own mapping: an address in the
/// other one would have to be translated first.
inline const char* contents(const RecordedRegion& region, std::size_t into) {
  const bool is_readable = seen == Seen::callbacks && region.is_writable(into);
  return (is_readable ? region.start : region.alias) + into;
}

/// The region that holds `at`, or null. Inline, for callbacks come here with every store.
inline RecordedRegion* region_of(const void* at) {
  for (int i = 0; i < regions.count; ++i)
    if (static_cast<std::size_t>(static_cast<const char*>(at) - regions.region[i].start) <
        regions.region[i].bytes)
      return &regions.region[i];
  return nullptr;
}

/// Whether threads on two hosts use the pool: reads matter, too.
extern std::atomic<bool> two_hosts;

/// Whether the program handles signals: a handler may store to the pool.
extern std::atomic<bool> has_handlers;

/// Reads NEARFAR_CRASH_LOG; does nothing if it is not set. The log begins with the first mapping.
void start();
/// Ends the log.
void finish();
bool started();
/// Whether this is the process that is recorded: a child of vfork() has the same memory.
bool is_recorded();

/// A library has created the file at `path`: if it is the pool, recording begins here.
void created(const char* path);

/// The program has given the file of the descriptor another size. A pool that grows is recorded up to
/// then.
void resized(int fd);
void resized(const char* path);

/// For mremap(): the region that begins there. Until moved() or resume_watch(), it has the rights that the
/// program asked for.
std::optional<RecordedRegion> pause_watch(void* start);
void resume_watch(const RecordedRegion& region);
/// A region is elsewhere, or has another size.
void moved(const RecordedRegion& from, void* to, std::size_t bytes);

/// Who stores: the number of a thread in the log, and its host.
struct Author {
  std::uint16_t thread;
  std::uint8_t host;

  friend bool operator==(const Author&, const Author&) = default;
};
/// The calling thread.
Author author();
/// The number in the log of a thread that the caller creates; the caller has one before.
std::uint16_t reserve_thread_number();
/// The calling thread has this number.
void use_thread_number(std::uint16_t number);

/// Whether a descriptor is one of the pool.
bool is_pool(int fd);
/// Whether its file system has the pool.
bool holds_pool(int fd);
/// The program starts a process, which may store to the pool.
void expect_child();
/// Notes that a fault which is not the recorder's is about to end the program.
void note_own_fault();
/// Notes a system call that failed because it stores to the pool, whose pages are read-only.
void note_refused_call(const char* name);
/// Ends the recording for this reason, of which the user learns; the program goes on unrecorded.
void end_recording(const char* why);
/// Whether that has happened: the pool is no longer protected.
bool has_failed();
/// Whether stores are not recorded: in a child of fork(), which is noted, or after a failure.
bool is_unrecorded();

/// So many flushes and fences of a module are not seen.
void report_unseen(int count, const char* module);

/// The program gives memory this protection: if it can be executed, the program may generate code there.
void expect_code(int protection);
void mapped(void* start, std::size_t bytes, int protection, int flags, int fd, off_t offset);
void unmapped(void* start, std::size_t bytes);

/// A store that a callback announced is recorded when its thread calls next, for then it has been
/// made; a no-op where there is none.
void settle_stores();
struct Range {
  const void* at;
  std::size_t bytes;
};
/// Records such stores of other threads that were made, to all of the pool or to lines of a range.
void settle_stores_of_others(std::optional<Range> lines = {});
/// Of bytes of a region that were copied before, under the lock that is held: what others store there
/// at any moment is as the log has it.
void settle_in_copy(const RecordedRegion& region, std::uint64_t into, std::span<char> copy);
/// Such stores of the calling thread, which ends later, can be found by others.
void begin_callbacks_of_thread();
void end_callbacks_of_thread();
/// Whether bytes of the pool differ from those in the log; true where stores are only judged.
bool differs_from_log(const void* at, std::size_t bytes);
/// Whether any code was compiled with callbacks.
bool has_callbacks();

/// Before a store is recorded: records that the thread's transaction has ended, if it has. What runs
/// after a commit or abort, such as TX_ONCOMMIT, is not a part of it. `code` is that of the store.
void settle_transaction(const void* code);

/// `code` is a return address; 0 if unknown. An event without an address has a number in `bytes`
/// (begin, end; tx_end: why the transaction was not committed, or 0).
void report(EventKind kind, const void* at, std::size_t bytes, const void* code);
/// A clflush, which is ordered with later stores, unlike other flushes: recorded with a fence, unless
/// other lines of the thread wait for one, for clflush does not order those.
void report_clflush(const void* at, const void* code);
/// A store that was made already: takes its bytes from memory and updates the shadow.
void report_store(EventKind kind, const void* at, std::size_t bytes, const void* code);
/// Where the calling thread stores. The lock is held.
SiteNumber site_of_store(const void* code);
/// With faults: records as stores what has changed there.
void report_changed(const void* at, std::size_t bytes, const void* code);
/// write() and the like: bytes at an offset of the file of a descriptor, if it is the pool.
void report_written(int fd, std::uint64_t offset, std::size_t bytes, const void* code);
/// A part of the file of a descriptor was made zero, if it is the pool. With faults, what has changed is
/// recorded.
void report_zeroed(int fd, std::uint64_t offset, std::size_t bytes, const void* code);
/// fsync() and the like: what was stored to the file of the descriptor, if it is the pool, is durable.
void report_synced(int fd, const void* code);
/// syncfs(): what was stored to the pool is durable, if it is in the file system of the descriptor.
void report_synced_file_system(int fd, const void* code);
/// sync(): what was stored to the pool is durable.
void report_all_synced(const void* code);
/// The program has an object there. What it holds when it is new was not stored unseen.
void report_object(const void* at, std::size_t bytes, bool is_new);
/// What the allocator did with these bytes, for the judge.
void report_use(Use use, const void* at, std::size_t bytes, const void* code);
/// A new object is published, for the judge. `link`: where the allocator has stored its address; null
/// where that is not known.
void report_published(const void* link, const void* at, std::size_t bytes, const void* code);
/// A load, in a program of two hosts.
void report_load(const void* at, std::size_t bytes, const void* code);
/// The calling thread continues on this host.
void continue_on_host(int host);
/// The bytes that an instruction can store, and whether it stores all of them.
struct NamedBytes {
  std::span<const std::byte> bytes;
  bool all;
};
/// Compares the page of a store with its shadow, and reports what has changed as stores. If all
/// bytes are stored, one of what was there before is judged as a store, too.
void report_changes(EventKind kind, const NamedBytes& stored, const void* code);

} // namespace nearfar::crash::runtime
