// Blocks of posix_memalign() and its kin as persistent memory: research prototypes flush such blocks
// in place of a pool. A library of its own, which is loaded next to the recorder.
//
// How            NEARFAR_CRASH_HEAP=BYTES. The blocks lie one after another in a file without a name,
//                which is mapped at the first of them and recorded as the pool. They are not used
//                again once they are freed. Blocks that do not fit are the C library's.
// Thread safety  all functions.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace {

std::once_flag made;
std::size_t size = 0;  ///< bytes of the heap
char* start = nullptr; ///< null if it could not be made
std::atomic<std::size_t> used{0};

/// The mapping is recorded by the recorder's mmap().
void make() {
  const char* const text = std::getenv("NEARFAR_CRASH_HEAP");
  const std::size_t wanted = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  const int file = wanted == 0 ? -1 : memfd_create("nearfar-crash-heap", MFD_CLOEXEC);
  if (file < 0) return;
  if (ftruncate(file, static_cast<off_t>(wanted)) == 0) {
    void* const mapped = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) {
      start = static_cast<char*>(mapped);
      size = wanted;
    }
  }
  close(file);
}

/// A block of the heap, or null.
void* take(std::size_t alignment, std::size_t bytes) {
  std::call_once(made, make);
  if (start == nullptr || bytes == 0) return nullptr;
  std::size_t from = used.load();
  std::size_t at = 0;
  do {
    at = (from + alignment - 1) / alignment * alignment;
    if (at + bytes > size) return nullptr;
  } while (!used.compare_exchange_weak(from, at + bytes));
  return start + at;
}

/// The function that this library's hides.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

} // namespace

#define NEARFAR_EXPORT extern "C" [[gnu::visibility("default")]]

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
  const char* const at = static_cast<const char*>(block);
  if (start == nullptr || at < start || at >= start + size) real(block);
}
