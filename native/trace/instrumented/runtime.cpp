// The recorder for programs that are compiled with -fsanitize=thread: this library replaces
// ThreadSanitizer's. For floating point, AVX-512, and machines without QEMU.
//
// Recorded       every access that the compiler instruments, also of 16, 32 and 64 bytes, and
//                copies by the C library. Not recorded: libraries that are compiled without the
//                option.
// Instructions   are unknown: accesses are counted in their place.
// Thread safety  any thread.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#include "trace/recorder/thread_recorder.hpp"

namespace {

using namespace nearfar::trace;

#define NEARFAR_FAST [[gnu::tls_model("initial-exec")]]

ring::Shared* shared = nullptr;
CodeRanges code_ranges;
ReportedSites reported_sites;
std::atomic<std::uint32_t> process{0};
pthread_key_t thread_end;
ThreadRecorder* all[ring::max_threads];
std::atomic<unsigned> opened{0};

thread_local ThreadRecorder* own NEARFAR_FAST = nullptr;
thread_local bool opening NEARFAR_FAST = false;

void record_stack(ThreadRecorder& recorder) {
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  recorder.set_stack(reinterpret_cast<std::uint64_t>(low),
                     reinterpret_cast<std::uint64_t>(low) + bytes);
}

void at_thread_end(void* recorder) { static_cast<ThreadRecorder*>(recorder)->publish_counts(); }

/// Makes a recorder for the calling thread; false if nothing is recorded.
[[gnu::noinline]] bool open_recorder() {
  if (shared == nullptr || opening) return false;
  opening = true; // functions called here may be instrumented themselves
  void* memory = mmap(nullptr, sizeof(ThreadRecorder), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* recorder = static_cast<ThreadRecorder*>(memory);
  if (memory == MAP_FAILED || !recorder->open(*shared)) return opening = false;
  recorder->counts = &recorder->own_counts;
  recorder->counts_accesses = true;
  recorder->take_slot(process.load());
  record_stack(*recorder);
  pthread_setspecific(thread_end, recorder);
  const unsigned number = opened.fetch_add(1);
  if (number < ring::max_threads) all[number] = recorder;
  opening = false;
  own = recorder;
  return true;
}

[[gnu::always_inline]] inline void access(const volatile void* at, std::size_t bytes, bool store,
                                          const void* code) {
  if (__builtin_expect(own == nullptr, 0) && !open_recorder()) return;
  ThreadRecorder& recorder = *own;
  ++recorder.own_counts.accesses[store];
  const auto address = reinterpret_cast<std::uint64_t>(at);
  if (store)
    recorder.access<true>(address, bytes, reinterpret_cast<std::uint64_t>(code));
  else
    recorder.access<false>(address, bytes, reinterpret_cast<std::uint64_t>(code));
}
inline void on_init() {}
[[gnu::always_inline]] inline void on_read(const volatile void* at, std::size_t bytes,
                                           const void* code) {
  access(at, bytes, false, code);
}
[[gnu::always_inline]] inline void on_write(const volatile void* at, std::size_t bytes,
                                            const void* code) {
  access(at, bytes, true, code);
}
template <class Operation>
void on_atomic(const void* at, std::size_t bytes, const void* code, const Operation& operation) {
  on_write(at, bytes, code);
  operation();
}

int record_module(dl_phdr_info* info, std::size_t, void* recorder) {
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uint64_t low = info->dlpi_addr + segment.p_vaddr;
    if ((segment.p_flags & PF_X) != 0) code_ranges.add(low, segment.p_memsz);
    char program[4096];
    const char* path = info->dlpi_name;
    if (path[0] == '\0') { // the program itself
      const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
      program[length < 0 ? 0 : length] = '\0';
      path = program;
    }
    if (path[0] == '/')
      static_cast<ThreadRecorder*>(recorder)->events().emit_module(
          low & ~std::uint64_t{4095}, segment.p_memsz, segment.p_offset & ~std::uint64_t{4095},
          path);
  }
  return 0;
}

void in_child() {
  if (own == nullptr) return;
  const std::uint32_t parent = process.load();
  process = shared->processes.fetch_add(1);
  own->take_slot(process);
  own->events().emit(ring::EventKind::fork, parent, process, 0);
  all[0] = own;
  opened = 1; // the other threads belong to the parent
}

[[gnu::constructor(101)]] void begin() {
  const char* path = std::getenv("NEARFAR_TRACE_RING");
  if (path == nullptr) return;
  ring::Shared* ring = ring::attach(path);
  unsetenv("NEARFAR_TRACE_RING"); // programs that this one starts are not traced
  if (ring == nullptr || pthread_key_create(&thread_end, at_thread_end) != 0) return;
  shared = ring;
  if (open_recorder()) { // copies made here are not the program's
    ThreadRecorder* recorder = own;
    own = nullptr;
    opening = true;
    dl_iterate_phdr(record_module, recorder);
    opening = false;
    own = recorder;
  }
  pthread_atfork(nullptr, nullptr, in_child);
}

[[gnu::destructor]] void end() {
  const unsigned count = opened.load();
  for (unsigned i = 0; i < count && i < ring::max_threads; ++i)
    if (all[i] != nullptr) all[i]->publish_counts();
}

template <class Function>
Function* libc(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

} // namespace

#include "trace/instrumented/callbacks.hpp"

#define NEARFAR_EXPORT [[gnu::visibility("default"), gnu::used]]
#define NEARFAR_CALLER __builtin_return_address(0)

extern "C" {

// The shim reports allocations here.
NEARFAR_EXPORT void nearfar_trace_allocated(const Allocation* allocation) {
  if (own != nullptr || open_recorder())
    own->record_allocation(*allocation, code_ranges, reported_sites);
}
NEARFAR_EXPORT void nearfar_trace_freed(const void* block) {
  if (own != nullptr || open_recorder()) own->record_free(reinterpret_cast<std::uint64_t>(block));
}

// Copies by the C library. A copy counts as one load and one store.
NEARFAR_EXPORT void* memcpy(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes > 0 && own != nullptr) {
    on_read(from, bytes, NEARFAR_CALLER);
    on_write(to, bytes, NEARFAR_CALLER);
  }
  void* result = to;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  return result;
}
NEARFAR_EXPORT void* memmove(void* to, const void* from, std::size_t bytes) noexcept {
  static auto* const real = libc<void*(void*, const void*, std::size_t)>("memmove");
  if (bytes > 0 && own != nullptr) {
    on_read(from, bytes, NEARFAR_CALLER);
    on_write(to, bytes, NEARFAR_CALLER);
  }
  return real(to, from, bytes);
}
NEARFAR_EXPORT void* memset(void* to, int value, std::size_t bytes) noexcept {
  if (bytes > 0 && own != nullptr) on_write(to, bytes, NEARFAR_CALLER);
  void* result = to;
  asm volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
  return result;
}
}
