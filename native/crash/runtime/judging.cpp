#include "crash/runtime/judging.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash/runtime/kernel.hpp"
#include "crash/runtime/recording.hpp"
#include "os/library_descriptor.hpp"

namespace nearfar::crash::runtime {

namespace {

os::LibraryDescriptor file;
char file_path[64] = ""; ///< of another process's descriptor: by it, the file is opened again
bool requested = false;
alignas(Judge) char judge_memory[sizeof(Judge)];
Judge* current = nullptr;

} // namespace

void request_judgement(const char* path) {
  if (path == nullptr) return;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    std::fprintf(stderr, "nearfar: cannot open the memory of the judge %s: %s\n", path,
                 std::strerror(errno));
    _exit(126);
  }
  requested = true;
  std::snprintf(file_path, sizeof file_path, "%s", path);
  file.adopt(os::File(fd));
}

bool begin_judgement(std::uint64_t pool_bytes) {
  if (!requested) return true;
  const std::size_t bytes = Judge::memory_bytes(pool_bytes);
  if (file.get() < 0) file.reopen(file_path, O_RDWR); // the program closes what it does not know
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return false;
  void* memory = reinterpret_cast<void*>(system_call(
      SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0));
  if (memory == MAP_FAILED) return false;
  file.close();
  unsetenv("NEARFAR_CRASH_JUDGE");
  const Observed observed = seen == Seen::faults ? Observed::changes : Observed::all;
  current = new (judge_memory) Judge(memory, pool_bytes, observed);
  return true;
}

Judge* judge() { return current; }

} // namespace nearfar::crash::runtime
