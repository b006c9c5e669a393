// Blocks of posix_memalign() and its kin as persistent memory: research prototypes flush such blocks
// in place of a pool. A library of its own, which is loaded next to the recorder.
//
// How            NEARFAR_CRASH_HEAP=BYTES. The blocks lie one after another in a file without a name,
//                which is mapped at the first of them and recorded as the pool. They are not used
//                again once they are freed. Blocks that do not fit are the C library's, and a line in
//                LOG.unrecorded says so.
// Thread safety  all functions.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

#include "crash/runtime/replaced.hpp"
#include "crash/runtime/unrecorded.hpp"

using namespace nearfar::crash::runtime;

namespace {

constexpr std::size_t smallest_alignment = 16;

std::once_flag made, noted;
std::size_t size = 0;         ///< bytes of the heap
char* start = nullptr;        ///< null if it could not be made
std::size_t* sizes = nullptr; ///< of blocks, by their offset in units of the smallest alignment
std::atomic<std::size_t> used{0};

void* map(std::size_t bytes, int flags, int file) {
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, file, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

/// The mapping is recorded by the recorder's mmap().
void make() {
  const char* const text = std::getenv("NEARFAR_CRASH_HEAP");
  const std::size_t wanted = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  const int file = wanted == 0 ? -1 : memfd_create("nearfar-crash-heap", MFD_CLOEXEC);
  if (file < 0) return;
  const std::size_t table = (wanted / smallest_alignment + 1) * sizeof(std::size_t);
  sizes = static_cast<std::size_t*>(map(table, MAP_PRIVATE | MAP_ANONYMOUS, -1));
  if (sizes != nullptr && ftruncate(file, static_cast<off_t>(wanted)) == 0) {
    start = static_cast<char*>(map(wanted, MAP_SHARED, file));
    if (start != nullptr) size = wanted;
  }
  close(file);
}

void note_full() {
  if (const char* const log = std::getenv("NEARFAR_CRASH_LOG"); log != nullptr)
    note_unrecorded(log, "the heap is full");
}

/// A block of the heap, or null.
void* take(std::size_t alignment, std::size_t bytes) {
  std::call_once(made, make);
  if (start == nullptr || bytes == 0) return nullptr;
  alignment = std::max(alignment, smallest_alignment);
  std::size_t from = used.load();
  std::size_t at = 0;
  do {
    at = (from + alignment - 1) / alignment * alignment;
    if (at > size || bytes > size - at) {
      std::call_once(noted, note_full);
      return nullptr;
    }
  } while (!used.compare_exchange_weak(from, at + bytes));
  sizes[at / smallest_alignment] = bytes;
  return start + at;
}

bool is_own(const void* block) {
  const char* const at = static_cast<const char*>(block);
  return start != nullptr && at >= start && at < start + size;
}

std::size_t size_of(const void* block) {
  return sizes[static_cast<std::size_t>(static_cast<const char*>(block) - start) /
               smallest_alignment];
}

} // namespace

NEARFAR_EXPORT int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
  static auto* const real = next<int(void**, std::size_t, std::size_t)>("posix_memalign");
  const bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;
  void* const own = is_power && alignment >= sizeof(void*) ? take(alignment, bytes) : nullptr;
  if (own == nullptr) return real(block, alignment, bytes);
  *block = own;
  return 0;
}

#define NEARFAR_ALIGNED(name)                                                                      \
  NEARFAR_EXPORT void* name(std::size_t alignment, std::size_t bytes) noexcept {                   \
    static auto* const real = next<void*(std::size_t, std::size_t)>(#name);                        \
    const bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;                    \
    void* const own = is_power ? take(alignment, bytes) : nullptr;                                 \
    return own != nullptr ? own : real(alignment, bytes);                                          \
  }
NEARFAR_ALIGNED(aligned_alloc)
NEARFAR_ALIGNED(memalign)
#undef NEARFAR_ALIGNED

NEARFAR_EXPORT void free(void* block) noexcept {
  static auto* const real = next<void(void*)>("free");
  if (!is_own(block)) real(block);
}

/// What grows stays in the heap.
NEARFAR_EXPORT void* realloc(void* block, std::size_t bytes) noexcept {
  static auto* const real = next<void*(void*, std::size_t)>("realloc");
  if (!is_own(block)) return real(block, bytes);
  if (bytes == 0) return nullptr;
  if (bytes <= size_of(block)) return block;
  void* moved = take(smallest_alignment, bytes);
  if (moved == nullptr) moved = std::malloc(bytes);
  if (moved != nullptr) std::memcpy(moved, block, size_of(block));
  return moved;
}

NEARFAR_EXPORT void* reallocarray(void* block, std::size_t count, std::size_t bytes) noexcept {
  if (bytes != 0 && count > SIZE_MAX / bytes) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(block, count * bytes);
}

NEARFAR_EXPORT std::size_t malloc_usable_size(void* block) noexcept {
  static auto* const real = next<std::size_t(void*)>("malloc_usable_size");
  return is_own(block) ? size_of(block) : real(block);
}
