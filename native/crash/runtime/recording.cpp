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
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash/runtime/coverage.hpp"
#include "crash/runtime/events.hpp"
#include "crash/runtime/file_parts.hpp"
#include "crash/runtime/instructions.hpp"
#include "crash/runtime/judging.hpp"
#include "crash/runtime/kernel.hpp"
#include "crash/runtime/lock.hpp"
#include "crash/runtime/memory_map.hpp"
#include "crash/runtime/page_rights.hpp"
#include "crash/runtime/turns.hpp"
#include "crash/runtime/unrecorded.hpp"
#include "crash/runtime/unseen_mappings.hpp"
#include "os/file.hpp"
#include "storelog/log_file.hpp"

namespace nearfar::crash::runtime {

using storelog::LogWriter;

Regions regions;
Seen seen = Seen::faults;
std::atomic<bool> has_handlers{false};

namespace {

using os::page_bytes;
constexpr std::size_t shadow_bytes = std::size_t{1} << 36; // address space, not memory
constexpr char own_fault[] = "a fault is its own";         ///< of the program, in the notes
constexpr char grown[] = "the pool has grown since it was mapped first";
constexpr char too_many_mappings[] = "the pool is mapped more than 16 times";

alignas(LogWriter) char writer_memory[sizeof(LogWriter)];
char log_path[4096] = "";    ///< empty: nothing is to be recorded
char wanted_pool[4096] = ""; ///< empty: the first file that is mapped
dev_t pool_device;
ino_t pool_file;
char pool_path[4096] = "";
bool pool_known = false;
bool noted = false; ///< that a child stores
bool maps_empty_file = false;
bool other_files = false; ///< the program maps more than the pool
pid_t recorded = 0;       ///< the process
bool forked = false;      ///< a child of the process that is recorded
int unseen_generated = 0; ///< flushes and fences in generated code
std::atomic<bool> generates_code{false};
std::atomic<bool> failed{false};

/// The whole file as it is now, durable before anything was recorded: a library may map a part of
/// it first.
bool take_image(int fd, std::size_t bytes) {
  return read_parts(fd, 0, bytes, [](std::uint64_t offset, std::size_t size, const char* now) {
    for (std::size_t at = 0; at < size; at += page_bytes) {
      const std::size_t part = std::min(page_bytes, size - at);
      char* const old = recording.shadow + offset + at;
      if (std::memcmp(now + at, old, part) == 0) continue;
      std::memcpy(old, now + at, part);
      if (judge() == nullptr) recording.writer->image(offset + at, now + at, part);
    }
  });
}

/// Notes a process that is not recorded: the file that it maps, or nothing for a child of fork() that
/// stores to the pool.
void note_process(const char* mapped_file) { note_unrecorded(log_path, mapped_file); }

/// Whether a file is the one that the user named as the pool.
bool is_wanted(const struct stat& file) {
  struct stat named;
  return stat(wanted_pool, &named) == 0 && named.st_dev == file.st_dev &&
         named.st_ino == file.st_ino;
}

bool is_pool(const struct stat& file) {
  return pool_known && file.st_dev == pool_device && file.st_ino == pool_file;
}

/// Notes a mapping of the pool, or, where none was seen, of what the pool may be.
void note_unseen_mapping(const UnseenMapping& found) {
  if (pool_known ? !is_pool(found.file) : wanted_pool[0] != '\0' && !is_wanted(found.file)) return;
  char line[4096 + 32];
  std::snprintf(line, sizeof line, "%s %s", maps_empty_file ? "mapped empty" : "mapped unseen",
                found.path);
  note_unrecorded(log_path, line);
}

/// Makes the log. A process that maps nothing leaves that to the one that it starts (env, a shell), and
/// the first that does is recorded.
bool begin_log(int pool) {
  const int fd = open(log_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST) {
    std::fprintf(stderr, "nearfar: a second program that maps a pool is not recorded\n");
    char path[4096];
    os::read_path(pool, path);
    note_process(path);
    char again[32]; // the same process has executed another program
    std::snprintf(again, sizeof again, "again %d", static_cast<int>(getpid()));
    note_unrecorded(log_path, again);
    return false;
  }
  if (fd < 0) {
    std::fprintf(stderr, "nearfar: cannot write the log %s: %s\n", log_path, std::strerror(errno));
    _exit(126);
  }
  recording.writer = new (writer_memory) LogWriter(os::File(fd), log_path);
  static char unwritten[sizeof log_path + 16]; // the stack of the program may be small
  std::snprintf(unwritten, sizeof unwritten, "%s.unwritten", log_path);
  recording.writer->keep_unwritten(unwritten);
  recording.writer->begin();
  recorded = getpid();
  return true;
}

bool begin_pool(int fd, const struct stat& file) {
  if (static_cast<std::size_t>(file.st_size) > shadow_bytes) return false;
  if (!begin_judgement(static_cast<std::uint64_t>(file.st_size))) return false;
  if (seen == Seen::faults || judge() == nullptr) { // what is judged needs no contents
    recording.shadow = static_cast<char*>(mmap(nullptr, shadow_bytes, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (recording.shadow == MAP_FAILED) return false;
  }
  if (!begin_coverage(fd, static_cast<std::uint64_t>(file.st_size))) return false;
  pool_device = file.st_dev;
  pool_file = file.st_ino;
  recording.pool_bytes = static_cast<std::uint64_t>(file.st_size);
  os::read_path(fd, pool_path);
  recording.writer->pool(recording.pool_bytes, pool_path);
  const bool is_zero = file.st_blocks == 0; // a file without blocks: nothing was written to it
  return pool_known = recording.shadow == nullptr || is_zero ||
                      take_image(fd, static_cast<std::size_t>(file.st_size));
}

void stop() {
  recording.writer = nullptr;
  log_path[0] = '\0';
}

bool has_grown(const struct stat& pool) {
  return static_cast<std::uint64_t>(pool.st_size) > recording.pool_bytes;
}

/// Calls each function that the recorder both replaces and uses, so that the C library's function is
/// looked up here, where no lock is held.
void find_replaced() {
  struct stat file;
  struct statfs system;
  char link[1];
  fstat(STDERR_FILENO, &file);
  stat("/", &file);
  fstatfs(STDERR_FILENO, &system);
  static_cast<void>(readlink("/", link, sizeof link));
}

/// Counts flushes and fences that the program generated itself, as a compiler in time does, in this range.
/// Where it flushes nothing, its fences are of no interest.
void count_generated(std::uintptr_t start, std::uintptr_t end) {
  constexpr std::uintptr_t most = std::uintptr_t{1} << 28;
  if (!generates_code || recording.writer == nullptr) return;
  for_each_mapping([&](const Mapping& one) {
    if (!one.is_executable() || one.rights[0] != 'r' || one.end - one.start > most) return;
    if (one.path[0] != '\0' && std::strncmp(one.path, "/memfd:", 7) != 0) return;
    const std::uintptr_t from = std::max(start, one.start), to = std::min(end, one.end);
    if (from < to)
      unseen_generated += count_flushes(reinterpret_cast<const void*>(from), to - from);
  });
}

/// Ends the recording where it cannot go on: the log has no proper end then, and gives the reason. The
/// program goes on as it would alone.
void fail(const char* why) {
  std::fprintf(stderr, "nearfar: recording ends: %s\n", why);
  recording.writer->give_up(why);
  note_unrecorded(log_path, own_fault); // what faults from here on
  stop();
  failed = true;
  if (seen == Seen::faults)
    for (int i = 0; i < regions.count; ++i)
      protect_writable(regions.region[i], PROT_READ | PROT_WRITE);
}

/// In a child of fork(): its events would lie between those of its parent, and its end would end the
/// log. The lock may be held by a thread that is not there.
void leave_log_to_parent() {
  Lock::forget();
  recording.writer = nullptr;
  forked = true;
}

/// Code that is not compiled for the instrumented recorder stores unseen.
void write_coverage() {
  for (int i = 0; i < regions.count; ++i)
    recording.unseen += count_unseen(regions.region[i], recording.shadow);
  if (seen == Seen::callbacks && !has_callbacks())
    recording.writer->uninstrumented();
  else if (recording.unseen > 0)
    recording.writer->unseen_bytes(recording.unseen);
}

void watch(const RecordedRegion& region) {
  if (seen == Seen::faults && !failed) protect_writable(region, PROT_READ);
}

void resized(const struct stat& file) {
  if (!is_pool(file)) return;
  const Lock locked;
  if (recording.writer != nullptr && has_grown(file)) fail(grown);
}

/// Records what has changed in a part of the file since the shadow was right.
bool compare_file(int fd, std::uint64_t offset, std::uint64_t bytes) {
  return read_parts(fd, offset, bytes, [](std::uint64_t at, std::size_t size, const char* now) {
    compare(now, at, size, EventKind::nt_store, outside, {});
  });
}

/// A second mapping of the same bytes, writable if the descriptor allows it; null if there is none.
char* map_alias(std::size_t bytes, int fd, off_t offset) {
  for (const int protection : {PROT_READ | PROT_WRITE, PROT_READ}) {
    void* const got = reinterpret_cast<void*>(
        system_call(SYS_mmap, nullptr, bytes, protection, MAP_SHARED, fd, offset));
    if (got != MAP_FAILED) return static_cast<char*>(got);
  }
  return nullptr;
}

RecordedRegion part_of(const RecordedRegion& region, std::size_t from, std::size_t bytes) {
  RecordedRegion part = region;
  part.start += from;
  part.bytes = bytes;
  part.offset += from;
  part.alias += from;
  if (part.denied != nullptr) part.denied += from / page_bytes;
  return part;
}

/// Ends the recording of what lies in [first, last) of a region.
void unmap_part(int number, char* first, char* last) {
  const RecordedRegion whole = regions.region[number];
  first = std::max(first, whole.start);
  last = std::min(last, whole.start + whole.bytes);
  if (first >= last) return;
  const auto before = static_cast<std::size_t>(first - whole.start);
  const auto bytes = static_cast<std::size_t>(last - first);
  const std::size_t after = whole.bytes - before - bytes;
  const RecordedRegion gone = part_of(whole, before, bytes);
  recording.unseen += count_unseen(gone, recording.shadow);
  system_call(SYS_munmap, gone.alias, gone.bytes);
  if (whole.denied != nullptr && bytes == whole.bytes)
    system_call(SYS_munmap, whole.denied, page_count(bytes));
  regions.region[number] = regions.region[--regions.count];
  if (before > 0) regions.region[regions.count++] = part_of(whole, 0, before);
  if (after == 0) return;
  if (regions.count == Regions::most) return fail(too_many_mappings);
  regions.region[regions.count++] = part_of(whole, before + bytes, after);
}

} // namespace

bool started() { return log_path[0] != '\0'; }

void expect_child() { recording.has_children = true; }

void note_own_fault() {
  if (is_recorded()) note_unrecorded(log_path, own_fault);
}

void note_refused_call(const char* name) {
  static std::atomic<bool> is_noted{false};
  if (!is_recorded() || is_noted.exchange(true)) return;
  char line[64];
  std::snprintf(line, sizeof line, "a system call was refused %s", name);
  note_unrecorded(log_path, line);
}

bool is_unrecorded() {
  if (recording.writer != nullptr) return false;
  if (forked && !noted) note_process("");
  noted = noted || forked;
  return true;
}

void end_recording(const char* why) {
  settle_stores();
  const Lock locked;
  if (recording.writer != nullptr) fail(why);
}

bool has_failed() { return failed; }

bool is_pool(int fd) {
  struct stat file;
  return fstat(fd, &file) == 0 && is_pool(file);
}

bool holds_pool(int fd) {
  struct stat file;
  return fstat(fd, &file) == 0 && pool_known && file.st_dev == pool_device;
}

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
  find_replaced();
  if (seen == Seen::callbacks) begin_callbacks_of_thread();
  pthread_atfork(nullptr, expect_child, leave_log_to_parent);
}

bool is_recorded() { return recording.writer != nullptr && getpid() == recorded; }

void finish() {
  settle_stores();
  settle_stores_of_others(); // what they stored is not unseen
  const Lock locked;
  if (started() && (is_recorded() || !pool_known)) for_each_unseen_mapping(note_unseen_mapping);
  if (!is_recorded()) return;
  struct stat file;
  if (stat(pool_path, &file) == 0 && is_pool(file) && has_grown(file)) return fail(grown);
  write_coverage();
  count_generated(0, UINTPTR_MAX);
  if (unseen_generated > 0)
    recording.writer->unseen(static_cast<std::uint64_t>(unseen_generated), "generated code");
  recording.writer->end();
  if (recording.writer->failed())
    std::fprintf(stderr, "nearfar: the log could not be written to its end\n");
}

void mapped(void* start, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  const int shared = flags & MAP_TYPE;
  const bool writable = (protection & PROT_WRITE) != 0;
  struct stat file;
  if (!started() || fd < 0 || (shared != MAP_SHARED && shared != MAP_SHARED_VALIDATE) ||
      fstat(fd, &file) != 0 || !S_ISREG(file.st_mode))
    return;
  if (file.st_size == 0) {
    maps_empty_file = true;
    return;
  }
  if (wanted_pool[0] != '\0' && !is_wanted(file)) return;
  if (!writable && (!is_pool(file) || is_unrecorded()))
    return; // of the pool: it may be flushed there
  settle_stores();
  const Lock locked;
  if (recording.writer == nullptr && !begin_log(fd)) return stop();
  if (!pool_known && !begin_pool(fd, file)) return fail("no memory for a copy of the pool");
  if (!is_pool(file)) {
    if (other_files) return;
    other_files = true;
    char path[4096];
    os::read_path(fd, path);
    return recording.writer->other_file(path);
  }
  if (has_grown(file)) return fail(grown);
  if (regions.count == Regions::most) return fail(too_many_mappings);
  const auto at = static_cast<std::uint64_t>(offset);
  const auto left = static_cast<std::size_t>(std::max<off_t>(file.st_size - offset, 0));
  bytes = std::min(bytes, page_count(left) * page_bytes); // an access to what follows is a SIGBUS
  if (bytes == 0) return;
  char* const alias = map_alias(bytes, fd, offset);
  if (alias == nullptr) return fail("the pool cannot be mapped a second time");
  // What write() or another process did since the image was taken, or since an earlier mapping.
  if (recording.shadow != nullptr && !compare_file(fd, at, std::min(bytes, left)))
    return fail("the pool cannot be read");
  put(EventKind::fence, outside, 0, 0, nullptr, {});
  recording.writer->flush();
  const RecordedRegion region{static_cast<char*>(start), bytes, at, alias, writable};
  watch(region);
  regions.region[regions.count] = region;
  ++regions.count;
}

void expect_code(int protection) {
  if ((protection & PROT_EXEC) != 0) generates_code = true;
}

void unmapped(void* start, std::size_t bytes) {
  settle_stores();
  settle_stores_of_others();
  const Lock locked;
  const auto at = reinterpret_cast<std::uintptr_t>(start);
  count_generated(at, at + bytes);
  char* const end = static_cast<char*>(start) + page_count(bytes) * page_bytes;
  for (int i = regions.count - 1; i >= 0;
       --i) // what is left of a region is added behind the others
    unmap_part(i, static_cast<char*>(start), end);
}

void report_unseen(int count, const char* module) {
  const Lock locked;
  if (recording.writer == nullptr) return;
  char path[4096];
  if (module[0] == '\0') os::read_link("/proc/self/exe", path);
  recording.writer->unseen(static_cast<std::uint64_t>(count), module[0] == '\0' ? path : module);
}

void created(const char* path) {
  settle_stores();
  struct stat file;
  if (stat(path, &file) != 0) return;
  const Lock locked;
  if (recording.writer != nullptr && is_pool(file)) {
    if (judge() != nullptr) judge()->forget();
    recording.writer->created();
    // The library's stores have no callbacks.
    const os::File pool(open(path, O_RDONLY | O_CLOEXEC));
    if (!keep_file(pool.fd()) ||
        (recording.shadow != nullptr && !take_image(pool.fd(), recording.pool_bytes)))
      return fail("the pool cannot be read");
    recording.writer->flush();
  }
}

void resized(int fd) {
  struct stat file;
  if (fstat(fd, &file) == 0) resized(file);
}

void resized(const char* path) {
  struct stat file;
  if (stat(path, &file) == 0) resized(file);
}

std::optional<RecordedRegion> pause_watch(void* start) {
  settle_stores();
  const Lock locked;
  const RecordedRegion* region = region_of(start);
  if (region == nullptr || region->start != start) return {};
  if (seen == Seen::faults) protect_writable(*region, PROT_READ | PROT_WRITE);
  return *region;
}

void resume_watch(const RecordedRegion& region) {
  const Lock locked;
  watch(region);
}

void moved(const RecordedRegion& from, void* to, std::size_t bytes) {
  const bool writable = from.is_writable(0); // what is moved together has the same right
  unmapped(from.start, from.bytes);
  const os::File pool(open(pool_path, O_RDWR | O_CLOEXEC));
  mapped(to, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, pool.fd(),
         static_cast<off_t>(from.offset));
}

} // namespace nearfar::crash::runtime
