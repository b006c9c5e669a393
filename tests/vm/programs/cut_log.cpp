#include "cut_log.hpp"

#include <atomic>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <libpmem.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <mutex>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

#include "storelog/storelog.hpp"

using nearfar::storelog::EventKind;
using nearfar::storelog::Site;

namespace {

constexpr std::size_t line = nearfar::storelog::line_bytes;

struct Line {
  std::uint64_t offset;
  std::uint64_t turn; ///< two threads flush one line: the later copy has the stores of the earlier
  unsigned char bytes[line];
};
static_assert(sizeof(Line) == 80);

std::mutex mutex;
int descriptor = -1;
char pool_path[PATH_MAX];
cut::Without without = cut::Without::nothing;

/// Addresses of the pool's mapping; libpmemobj maps its header alone before it maps all of it.
struct Place {
  std::uintptr_t base = 0;
  std::uintptr_t end = 0;
  bool holds(std::uintptr_t address) const { return address >= base && address < end; }
};
Place last_found;
std::atomic<std::uint64_t> turns{0};
thread_local std::vector<Line> pending;

enum class Event : unsigned char { begins, ends, stops };
constexpr std::size_t phase_count = 4;
std::atomic<std::uint64_t> phase_fences[phase_count];
cut::Phase stop_phase = cut::Phase::none;
std::uint64_t stop_fence = 0;
thread_local std::uint64_t this_thread = 0;
thread_local cut::Phase this_phase = cut::Phase::none;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(70);
}

void send(const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = write(descriptor, from, bytes);
    if (sent < 0) fail("log port");
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

/// One record in one write, so that a cut log ends in the middle of one at most.
void send_record(char kind, const std::vector<std::uint64_t>& numbers, const void* more = nullptr,
                 std::size_t bytes = 0) {
  std::vector<char> whole(1 + numbers.size() * 8 + bytes);
  whole[0] = kind;
  std::memcpy(whole.data() + 1, numbers.data(), numbers.size() * 8);
  if (bytes > 0) std::memcpy(whole.data() + 1 + numbers.size() * 8, more, bytes);
  const std::lock_guard guard(mutex);
  send(whole.data(), whole.size());
}

void send_extents() {
  constexpr unsigned most = 256;
  std::vector<char> room(sizeof(fiemap) + most * sizeof(fiemap_extent));
  auto* map = reinterpret_cast<fiemap*>(room.data());
  map->fm_length = ~0ull;
  map->fm_flags = FIEMAP_FLAG_SYNC;
  map->fm_extent_count = most;
  const int file = open(pool_path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || ioctl(file, FS_IOC_FIEMAP, map) != 0 || map->fm_mapped_extents == most)
    fail("extents of the pool");
  close(file);
  std::vector<std::uint64_t> numbers{map->fm_mapped_extents};
  for (unsigned i = 0; i < map->fm_mapped_extents; ++i) {
    const fiemap_extent& extent = map->fm_extents[i];
    numbers.insert(numbers.end(), {extent.fe_logical, extent.fe_physical, extent.fe_length});
  }
  send_record('X', numbers);
}

/// Looks for the mapping of the pool's file.
Place find_pool() {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) fail("/proc/self/maps");
  Place found;
  char text[PATH_MAX + 128];
  while (std::fgets(text, sizeof text, maps) != nullptr) {
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;
    std::uint64_t offset = 0;
    char path[PATH_MAX] = "";
    const int read = std::sscanf(text, "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNx64 " %*s %*s %4095s",
                                 &low, &high, &offset, path);
    if (read != 4 || std::strcmp(path, pool_path) != 0) continue;
    if (offset == 0) found.base = low;
    if (found.base == low - offset) found.end = high;
  }
  std::fclose(maps);
  return found;
}

/// The mapping that holds an address, or an empty one if it lies elsewhere.
Place place_of(std::uintptr_t address) {
  const std::lock_guard guard(mutex);
  if (!last_found.holds(address)) {
    const Place found = find_pool();
    if (!found.holds(address)) return {};
    last_found = found;
  }
  return last_found;
}

void flushed(const void* at, std::size_t bytes) {
  if (descriptor < 0 || bytes == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(at) & ~(line - 1);
  const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(at) + bytes;
  const Place pool = place_of(first);
  for (std::uintptr_t address = first; address < last && pool.holds(address); address += line) {
    Line copy{};
    copy.offset = address - pool.base;
    copy.turn = ++turns; // before the copy: a copy of a later turn was taken after these stores
    std::memcpy(copy.bytes, reinterpret_cast<const void*>(address), line);
    pending.push_back(copy);
  }
}

/// Where segments of the map are born: its growth apart from the chunks.
bool in_segments(const Site& site) {
  return std::string_view(site.file()).ends_with("structures/segments.hpp");
}

void report(cut::Phase phase, Event event) {
  if (descriptor < 0) return;
  const auto number = static_cast<std::uint64_t>(phase);
  send_record('P', {this_thread, number, static_cast<std::uint64_t>(event), phase_fences[number]});
}

/// Counts a fence that is about to be made; the one that was chosen never is.
void count_fence(cut::Phase phase) {
  if (phase == cut::Phase::none) return;
  const std::uint64_t fence = ++phase_fences[static_cast<std::size_t>(phase)];
  if (phase != stop_phase || fence != stop_fence) return;
  report(phase, Event::stops);
  for (;;)
    pause();
}

void fenced(cut::Phase phase = this_phase) {
  if (descriptor < 0 || pending.empty()) return;
  static std::once_flag once;
  std::call_once(once, send_extents);
  count_fence(phase);
  send_record('F', {pending.size()}, pending.data(), pending.size() * sizeof(Line));
  pending.clear();
}

/// The control without one fence: that after which the first operation was acknowledged, whenever
/// its line makes it again.
class OneFence {
public:
  void begin() { last_of_operation = Site(); }
  bool takes(const Site& site) {
    last_of_operation = site;
    const std::lock_guard guard(mutex_);
    return site == taken_;
  }
  void acknowledged() {
    const std::lock_guard guard(mutex_);
    if (taken_ == Site()) taken_ = last_of_operation;
  }

private:
  static thread_local Site last_of_operation;
  std::mutex mutex_;
  Site taken_;
};
thread_local Site OneFence::last_of_operation;
OneFence one_fence;

/// Takes what the structures report.
class Streamer final : public nearfar::storelog::Listener {
public:
  bool record(EventKind kind, const void* at, std::size_t bytes, Site site) override {
    const bool birth = this_phase == cut::Phase::none && in_segments(site);
    if (kind == EventKind::nt_store ||
        (kind == EventKind::flush && without != cut::Without::flushes))
      flushed(at, bytes);
    if (kind == EventKind::fence && !(without == cut::Without::fence && one_fence.takes(site)))
      fenced(birth ? cut::Phase::growth : this_phase);
    return true;
  }
};
Streamer streamer;

template <class Function>
Function real(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) fail(name);
  return reinterpret_cast<Function>(found);
}

void moved(const void* at, std::size_t bytes, unsigned flags) {
  if ((flags & PMEM_F_MEM_NOFLUSH) != 0) return;
  flushed(at, bytes);
  if ((flags & PMEM_F_MEM_NODRAIN) == 0) fenced();
}

} // namespace

void cut::stream_to(int to, const char* pool, Without what) {
  descriptor = to;
  without = what;
  std::snprintf(pool_path, sizeof pool_path, "%s", pool);
}

void cut::begin(std::uint64_t thread, std::uint64_t structure, std::uint64_t operation,
                std::uint64_t key, std::uint64_t value) {
  one_fence.begin();
  send_record('B', {thread, structure, operation, key, value});
}

void cut::acknowledge(std::uint64_t thread, std::uint64_t result) {
  one_fence.acknowledged();
  send_record('A', {thread, result});
}

void cut::stop_at(Phase phase, std::uint64_t fence) {
  stop_phase = phase;
  stop_fence = fence;
}

void cut::stream_this_thread(std::uint64_t thread) {
  this_thread = thread;
  nearfar::storelog::thread_state.listener = &streamer;
}

std::uint64_t cut::fences_in(Phase phase) { return phase_fences[static_cast<std::size_t>(phase)]; }

cut::During::During(Phase phase) {
  this_phase = phase;
  report(phase, Event::begins);
}

cut::During::~During() {
  report(this_phase, Event::ends);
  this_phase = Phase::none;
}

#pragma GCC visibility push(default)
extern "C" {

void pmem_flush(const void* at, std::size_t bytes) {
  static const auto next = real<decltype(&pmem_flush)>("pmem_flush");
  next(at, bytes);
  flushed(at, bytes);
}

void pmem_drain() {
  static const auto next = real<decltype(&pmem_drain)>("pmem_drain");
  next();
  fenced();
}

void pmem_persist(const void* at, std::size_t bytes) {
  static const auto next = real<decltype(&pmem_persist)>("pmem_persist");
  next(at, bytes);
  flushed(at, bytes);
  fenced();
}

int pmem_msync(const void* at, std::size_t bytes) {
  static const auto next = real<decltype(&pmem_msync)>("pmem_msync");
  const int code = next(at, bytes);
  flushed(at, bytes);
  fenced();
  return code;
}

void* pmem_memcpy(void* to, const void* from, std::size_t bytes, unsigned flags) {
  static const auto next = real<decltype(&pmem_memcpy)>("pmem_memcpy");
  next(to, from, bytes, flags);
  moved(to, bytes, flags);
  return to;
}

void* pmem_memmove(void* to, const void* from, std::size_t bytes, unsigned flags) {
  static const auto next = real<decltype(&pmem_memmove)>("pmem_memmove");
  next(to, from, bytes, flags);
  moved(to, bytes, flags);
  return to;
}

void* pmem_memset(void* to, int value, std::size_t bytes, unsigned flags) {
  static const auto next = real<decltype(&pmem_memset)>("pmem_memset");
  next(to, value, bytes, flags);
  moved(to, bytes, flags);
  return to;
}

} // extern "C"
#pragma GCC visibility pop
