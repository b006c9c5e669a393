#include "crash/runtime/recording.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <optional>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash/runtime/callers.hpp"
#include "crash/runtime/coverage.hpp"
#include "crash/runtime/judging.hpp"
#include "crash/runtime/lock.hpp"
#include "crash/runtime/sites.hpp"
#include "crash/runtime/turns.hpp"
#include "os/file.hpp"
#include "storelog/log_file.hpp"

namespace nearfar::crash::runtime {

using storelog::LogWriter;

Regions regions;
Seen seen = Seen::faults;
std::atomic<bool> two_hosts{false};
std::atomic<bool> has_handlers{false};

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t shadow_bytes = std::size_t{1} << 36; // address space, not memory
constexpr std::uint16_t outside = UINT16_MAX;              // who changes a file by write()
constexpr char grown[] = "the pool has grown since it was mapped first";

alignas(LogWriter) char writer_memory[sizeof(LogWriter)];
LogWriter* writer = nullptr;
char log_path[4096] = "";    ///< empty: nothing is to be recorded
char wanted_pool[4096] = ""; ///< empty: the first file that is mapped
dev_t pool_device;
ino_t pool_file;
std::uint64_t pool_bytes = 0;
char pool_path[4096] = "";
bool pool_known = false;
bool noted = false;        ///< that a child stores
bool other_files = false;  ///< the program maps more than the pool
pid_t recorded = 0;        ///< the process
std::uint64_t unseen = 0;  ///< bytes of regions that were unmapped
bool forked = false;       ///< a child of the process that is recorded
bool has_children = false; ///< the process that is recorded, after a fork()
char* shadow = nullptr;
std::atomic<std::uint16_t> threads{0};
/// A thread that takes turns for two hosts has a number on each.
thread_local std::uint16_t thread[storelog::hosts] = {UINT16_MAX, UINT16_MAX};
thread_local std::uint8_t host = 0;
/// The thread has flushed lines, or made non-temporal stores, and no fence has followed.
thread_local bool waits_for_fence = false;

std::uint16_t thread_number() {
  if (thread[host] == UINT16_MAX) thread[host] = threads.fetch_add(1);
  return thread[host];
}

/// The calls that led to a store, if they are of interest: what a library does is not judged.
std::optional<SiteNumber> caller_of(const void* code) {
  if (judge() != nullptr && is_in_library(code)) return {};
  return caller_site(*writer, code);
}

void put(EventKind kind, std::uint16_t who, std::uint64_t address, std::size_t bytes,
         const void* data, const void* code, std::optional<SiteNumber> caller = {}) {
  const bool needs_fence = kind == EventKind::flush || kind == EventKind::nt_store;
  if (who != outside && (needs_fence || kind == EventKind::fence)) waits_for_fence = needs_fence;
  const SiteNumber site = site_of(*writer, code, caller);
  const auto size = static_cast<std::uint32_t>(bytes);
  if (judge() != nullptr)
    judge()->take({kind, site.of_library, code == nullptr && !needs_fence ? Judge::any_thread : who,
                   site.number, size, address});
  else
    writer->event(kind, who, site.number, address, size, data,
                  who == outside ? std::uint8_t{0} : host);
}

/// A store by an instruction: the bytes of the pool that it writes, and the calls that led to it.
struct Stored {
  std::uint64_t begin = 0, end = ~std::uint64_t{0};
  const void* code = nullptr;
  std::optional<SiteNumber> caller = {};
  bool all = true; ///< see NamedBytes

  /// Another thread stored what changed there while the page was open for this instruction, or a
  /// child did since the shadow was right.
  bool is_of_another(std::uint64_t at) const { return others_store() && (at < begin || at >= end); }
  /// Where the bytes from `at` on are of another, or no longer are.
  std::uint64_t end_of_part(std::uint64_t at) const {
    return !others_store() || at >= end ? ~std::uint64_t{0} : at < begin ? begin : end;
  }

  /// The judge gets all bytes that the instruction writes, also those that it does not change.
  bool is_judged_whole(std::uint64_t from, std::uint64_t to) const {
    return all && judge() != nullptr && code != nullptr && from >= begin && to <= end;
  }

private:
  static bool others_store() { return __libc_single_threaded == 0 || has_children; }
};

/// Records what changed in [offset, offset + bytes) of the pool since the shadow was last right.
void compare(const char* now, std::uint64_t offset, std::size_t bytes, EventKind kind,
             std::uint16_t who, const Stored& stored) {
  for (std::size_t at = 0; at < bytes;) {
    char* old = shadow + offset;
    if (now[at] == old[at]) {
      ++at;
      continue;
    }
    const std::size_t most = std::min(bytes, stored.end_of_part(offset + at) - offset);
    std::size_t end = at + 1; // up to 7 equal bytes within one store are part of it
    for (std::size_t same = 0, i = end; i < most && same < 8; ++i) {
      same = now[i] == old[i] ? same + 1 : 0;
      if (same == 0) end = i + 1;
    }
    std::memcpy(old + at, now + at, end - at);
    const bool of_another = stored.is_of_another(offset + at);
    if (of_another && __libc_single_threaded != 0) { // a child: what it does is not judged
      put(EventKind::nt_store, outside, offset + at, end - at, now + at, nullptr);
      put(EventKind::fence, outside, 0, 0, nullptr, nullptr);
    } else if (of_another) // its code is not known
      put(kind, who, offset + at, end - at, now + at, nullptr);
    else if (!stored.is_judged_whole(offset + at, offset + end))
      put(kind, who, offset + at, end - at, now + at, stored.code, stored.caller);
    at = end;
  }
}

/// Calls visit(region, offset in it, bytes) for what lies in the pool of a range that begins there.
template <class Visit>
void each_part(const void* at, std::size_t bytes, Visit visit) {
  const auto* from = static_cast<const char*>(at);
  while (bytes > 0) {
    const RecordedRegion* region = region_of(from);
    if (region == nullptr) return;
    const auto into = static_cast<std::uint64_t>(from - region->start);
    const std::size_t part = std::min<std::size_t>(bytes, region->bytes - into);
    visit(*region, into, part);
    from += part;
    bytes -= part;
  }
}

/// The whole file as it is now, durable before anything was recorded: a library may map a part of
/// it first.
bool take_image(int fd, std::size_t bytes) {
  void* mapped =
      reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0));
  if (mapped == MAP_FAILED) return false;
  const auto* now = static_cast<const char*>(mapped);
  for (std::size_t at = 0; at < bytes; at += page_bytes) {
    const std::size_t part = std::min(page_bytes, bytes - at);
    if (std::memcmp(now + at, shadow + at, part) == 0) continue;
    std::memcpy(shadow + at, now + at, part);
    if (judge() == nullptr) writer->image(at, now + at, part);
  }
  syscall(SYS_munmap, mapped, bytes);
  return true;
}

/// Makes the log. A process that maps nothing leaves that to the one that it starts (env, a shell), and
/// the first that does is recorded.
bool begin_log() {
  const int fd = open(log_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST) {
    std::fprintf(stderr, "nearfar: a second process that maps a pool is not recorded\n");
    return false;
  }
  if (fd < 0) {
    std::fprintf(stderr, "nearfar: cannot write the log %s: %s\n", log_path, std::strerror(errno));
    _exit(126);
  }
  unsetenv("NEARFAR_CRASH_LOG"); // what the program starts is not recorded
  writer = new (writer_memory) LogWriter(os::File(fd), log_path);
  writer->begin();
  recorded = getpid();
  return true;
}

bool begin_pool(int fd, const struct stat& file) {
  if (static_cast<std::size_t>(file.st_size) > shadow_bytes) return false;
  if (!begin_judgement(static_cast<std::uint64_t>(file.st_size))) return false;
  if (seen == Seen::faults || judge() == nullptr) { // what is judged needs no contents
    shadow = static_cast<char*>(mmap(nullptr, shadow_bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (shadow == MAP_FAILED) return false;
  }
  if (seen == Seen::callbacks && !begin_coverage(fd, static_cast<std::uint64_t>(file.st_size)))
    return false;
  pool_device = file.st_dev;
  pool_file = file.st_ino;
  pool_bytes = static_cast<std::uint64_t>(file.st_size);
  os::read_path(fd, pool_path);
  writer->pool(pool_bytes, pool_path);
  const bool is_zero = file.st_blocks == 0; // a file without blocks: nothing was written to it
  return pool_known =
             shadow == nullptr || is_zero || take_image(fd, static_cast<std::size_t>(file.st_size));
}

void stop() {
  writer = nullptr;
  log_path[0] = '\0';
}

/// Ends the recording where it cannot go on: the log has no proper end then, and gives the reason.
void fail(const char* why) {
  std::fprintf(stderr, "nearfar: recording ends: %s\n", why);
  writer->give_up(why);
  stop();
}

/// Whether a file is the one that the user named as the pool.
bool is_wanted(const struct stat& file) {
  struct stat named;
  return stat(wanted_pool, &named) == 0 && named.st_dev == file.st_dev &&
         named.st_ino == file.st_ino;
}

/// Whether the file of a descriptor is the pool; reads what is known of it.
bool is_pool(int fd, struct stat& file) {
  return pool_known && fstat(fd, &file) == 0 && file.st_dev == pool_device &&
         file.st_ino == pool_file;
}

/// In a child of fork(): its events would lie between those of its parent, and its end would end the
/// log. The lock may be held by a thread that is not there.
void leave_log_to_parent() {
  Lock::forget();
  writer = nullptr;
  forked = true;
}

/// Code that is not compiled for the instrumented recorder stores unseen.
void write_coverage() {
  if (seen != Seen::callbacks) return;
  for (int i = 0; i < regions.count; ++i)
    unseen += count_unseen(regions.region[i], shadow);
  if (!has_callbacks())
    writer->uninstrumented();
  else if (unseen > 0)
    writer->unseen_bytes(unseen);
}

/// Whether a store is not recorded. A child that stores to the pool leaves a file next to the log, by
/// which the reader knows.
bool is_unrecorded() {
  if (writer != nullptr) return false;
  if (forked && !noted) {
    char name[sizeof log_path + 8];
    std::snprintf(name, sizeof name, "%s.forked", log_path);
    const os::File note(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  noted = noted || forked;
  return true;
}

void watch(const RecordedRegion& region) {
  if (seen == Seen::faults) syscall(SYS_mprotect, region.start, region.bytes, PROT_READ);
}

} // namespace

bool started() { return log_path[0] != '\0'; }

void start() {
  const char* path = getenv("NEARFAR_CRASH_LOG");
  if (path == nullptr || started()) return;
  const char* how = getenv("NEARFAR_CRASH_RECORDER");
  seen = how != nullptr && std::strcmp(how, "instrumented") == 0 ? Seen::callbacks : Seen::faults;
  std::snprintf(log_path, sizeof log_path, "%s", path);
  if (const char* pool = getenv("NEARFAR_CRASH_POOL"); pool != nullptr)
    std::snprintf(wanted_pool, sizeof wanted_pool, "%s", pool);
  request_judgement(getenv("NEARFAR_CRASH_JUDGE"));
  request_turn(getenv("NEARFAR_CRASH_TURN"));
  pthread_atfork(nullptr, [] { has_children = true; }, leave_log_to_parent);
}

bool is_recorded() { return writer != nullptr && getpid() == recorded; }

void finish() {
  settle_stores();
  const Lock locked;
  if (!is_recorded()) return;
  write_coverage();
  writer->end();
  if (writer->failed()) std::fprintf(stderr, "nearfar: the log could not be written to its end\n");
}

void mapped(void* start, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  const int shared = flags & MAP_TYPE;
  struct stat file;
  if (!started() || fd < 0 || (protection & PROT_WRITE) == 0 ||
      (shared != MAP_SHARED && shared != MAP_SHARED_VALIDATE) || fstat(fd, &file) != 0 ||
      !S_ISREG(file.st_mode) || file.st_size == 0)
    return;
  if (wanted_pool[0] != '\0' && !is_wanted(file)) return;
  const Lock locked;
  if (writer == nullptr && !begin_log()) return stop();
  if (!pool_known && !begin_pool(fd, file)) return fail("no memory for a copy of the pool");
  if (file.st_dev != pool_device || file.st_ino != pool_file) {
    if (other_files) return;
    other_files = true;
    char path[4096];
    os::read_path(fd, path);
    return writer->other_file(path);
  }
  if (static_cast<std::uint64_t>(file.st_size) > pool_bytes) return fail(grown);
  if (regions.count == Regions::most) return fail("the pool is mapped more than 16 times");
  const auto at = static_cast<std::uint64_t>(offset);
  const std::size_t inside =
      std::min(bytes, static_cast<std::size_t>(std::max<off_t>(file.st_size - offset, 0)));
  auto* alias = static_cast<char*>(reinterpret_cast<void*>(
      syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset)));
  if (alias == MAP_FAILED) return fail("the pool cannot be mapped a second time");
  // What write() or another process did since the image was taken, or since an earlier mapping.
  if (shadow != nullptr) compare(alias, at, inside, EventKind::nt_store, outside, {});
  put(EventKind::fence, outside, 0, 0, nullptr, nullptr);
  writer->flush();
  const RecordedRegion region{static_cast<char*>(start), bytes, at, alias};
  watch(region);
  regions.region[regions.count] = region;
  ++regions.count;
}

void unmapped(void* start, std::size_t bytes) {
  settle_stores();
  const Lock locked;
  for (int i = 0; i < regions.count; ++i) {
    RecordedRegion& region = regions.region[i];
    if (region.start < static_cast<char*>(start) ||
        region.start >= static_cast<char*>(start) + bytes)
      continue;
    if (seen == Seen::callbacks) unseen += count_unseen(region, shadow);
    syscall(SYS_munmap, region.alias, region.bytes);
    region = regions.region[--regions.count];
    --i;
  }
}

std::uint16_t reserve_thread_number() {
  thread_number();
  return threads.fetch_add(1);
}

void use_thread_number(std::uint16_t number) { thread[host] = number; }

void report_unseen(int count, const char* module) {
  const Lock locked;
  if (writer == nullptr) return;
  char path[4096];
  if (module[0] == '\0') os::read_link("/proc/self/exe", path);
  writer->unseen(static_cast<std::uint64_t>(count), module[0] == '\0' ? path : module);
}

void created(const char* path) {
  settle_stores();
  struct stat file;
  if (stat(path, &file) != 0) return;
  const Lock locked;
  if (writer != nullptr && pool_known && file.st_dev == pool_device && file.st_ino == pool_file) {
    if (judge() != nullptr) judge()->forget();
    writer->created(), writer->flush();
  }
}

void resized(int fd) {
  struct stat file;
  if (!is_pool(fd, file)) return;
  const Lock locked;
  if (writer != nullptr && static_cast<std::uint64_t>(file.st_size) > pool_bytes) fail(grown);
}

std::optional<std::uint64_t> end_watch(void* start) {
  const RecordedRegion* region = region_of(start);
  if (region == nullptr || region->start != start) return {};
  const std::uint64_t offset = region->offset;
  if (seen == Seen::faults) syscall(SYS_mprotect, start, region->bytes, PROT_READ | PROT_WRITE);
  unmapped(start, region->bytes);
  return offset;
}

void begin_watch(void* start, std::size_t bytes, std::uint64_t offset) {
  const os::File pool(open(pool_path, O_RDWR | O_CLOEXEC));
  mapped(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, pool.fd(), static_cast<off_t>(offset));
}

void keep_watch(void* start, std::size_t bytes, int protection) {
  if (seen != Seen::faults) return;
  auto* const first = static_cast<char*>(start);
  for (int i = 0; i < regions.count; ++i) {
    const RecordedRegion& region = regions.region[i];
    char* const begin = std::max(first, region.start);
    char* const end = std::min(first + bytes, region.start + region.bytes);
    if (begin < end) syscall(SYS_mprotect, begin, end - begin, protection & ~PROT_WRITE);
  }
}

void report_synced(int fd, const void* code) {
  struct stat file;
  if (!is_pool(fd, file)) return;
  for (int i = 0; i < regions.count; ++i)
    report(EventKind::flush, regions.region[i].start, regions.region[i].bytes, code);
  report(EventKind::fence, nullptr, 0, code);
}

void report_clflush(const void* at, const void* code) {
  const bool others_wait = waits_for_fence;
  report(EventKind::flush, at, 1, code);
  if (!others_wait) report(EventKind::fence, nullptr, 0, code);
}

void report(EventKind kind, const void* at, std::size_t bytes, const void* code) {
  settle_stores();
  if (!pool_known) return;
  if (kind == EventKind::flush && bytes > 0 && region_of(at) != nullptr) turn_at_flush();
  const Lock locked;
  if (writer == nullptr) return;
  if (storelog::marks(kind)) {
    put(kind, thread_number(), bytes, 0, nullptr, code);
    // A program that is killed loses little. Where stores are cheap to record, this is not.
    if (kind == EventKind::fence && seen == Seen::faults) writer->flush();
    return;
  }
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    const std::uint64_t from = region.offset + into;
    const std::uint64_t first = kind == EventKind::log ? from : from / 64 * 64;
    const std::size_t size = from + part - first;
    // What was stored to these lines while the page was open for another thread's store was not
    // seen yet.
    if (kind == EventKind::flush && seen == Seen::faults && __libc_single_threaded == 0) {
      const std::size_t lines = std::min((size + 63) / 64 * 64, pool_bytes - first);
      compare(region.alias + (first - region.offset), first, lines, EventKind::store,
              thread_number(), {0, 0});
    }
    put(kind, thread_number(), first, size, nullptr, code);
  });
}

void report_store(EventKind kind, const void* at, std::size_t bytes, const void* code) {
  if (region_of(at) == nullptr) return;
  settle_transaction(code);
  const Lock locked;
  if (is_unrecorded()) return;
  const std::optional<SiteNumber> caller = caller_of(code);
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    // What was there already changes no image: a thread that waits for a lock would fill the log.
    if (judge() == nullptr && !two_hosts &&
        std::memcmp(shadow + region.offset + into, region.alias + into, part) == 0)
      return;
    if (shadow != nullptr) std::memcpy(shadow + region.offset + into, region.alias + into, part);
    put(kind, thread_number(), region.offset + into, part, region.alias + into, code, caller);
  });
}

void report_use(Use use, const void* at, std::size_t bytes, const void* code) {
  settle_stores();
  const Lock locked;
  if (writer == nullptr || judge() == nullptr) return;
  const SiteNumber site = site_of(*writer, code);
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    judge()->take(use, {EventKind::store, false, thread_number(), site.number,
                        static_cast<std::uint32_t>(part), region.offset + into});
  });
}

void report_load(const void* at, std::size_t bytes, const void* code) {
  if (region_of(at) == nullptr) return;
  settle_stores();
  const Lock locked;
  if (writer == nullptr) return;
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    put(EventKind::load, thread_number(), region.offset + into, part, nullptr, code);
  });
}

void continue_on_host(int number) {
  settle_stores();
  if (number < 0 || number >= storelog::hosts) {
    std::fprintf(stderr, "nearfar: nearfar_crash_host(%d): there are hosts 0 and 1\n", number);
    std::abort();
  }
  host = static_cast<std::uint8_t>(number);
  if (host != 0) two_hosts = true;
}

void report_changes(EventKind kind, const NamedBytes& stored, const void* code) {
  settle_transaction(code);
  const Lock locked;
  const RecordedRegion* region = region_of(stored.bytes.data());
  if (region == nullptr || is_unrecorded()) return;
  const auto at = static_cast<std::uint64_t>(reinterpret_cast<const char*>(stored.bytes.data()) -
                                             region->start);
  const std::uint64_t page = at / page_bytes * page_bytes;
  const std::size_t bytes = std::min<std::size_t>(page_bytes, region->bytes - page);
  const std::size_t size = std::min(stored.bytes.size(), page + bytes - at);
  const std::uint64_t begin = region->offset + at;
  const Stored own{begin, begin + size, code, caller_of(code), stored.all};
  compare(region->alias + page, region->offset + page, bytes, kind, thread_number(), own);
  if (judge() == nullptr || !stored.all) return;
  put(kind, thread_number(), begin, size, nullptr, code, own.caller);
}

char* writable(void* at, std::size_t bytes) {
  const RecordedRegion* region = region_of(at);
  if (region == nullptr) return nullptr;
  const auto into = static_cast<std::size_t>(static_cast<const char*>(at) - region->start);
  return bytes <= region->bytes - into ? region->alias + into : nullptr;
}

} // namespace nearfar::crash::runtime
