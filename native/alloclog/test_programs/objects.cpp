// A program in C++ whose blocks the tests look up from outside. Usage: objects SCENARIO
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <thread>
#include <vector>

#include "alloclog/test_programs/report.h"

namespace {

struct alignas(512) Aligned {
  char bytes[1024];
};

ALLOCATES char* by_new() {
  auto* block = new char[700];
  block[0] = 1;
  return block;
}
ALLOCATES Aligned* by_aligned_new() {
  auto* block = new Aligned;
  block->bytes[0] = 1;
  return block;
}
ALLOCATES char* by_nothrow_new() {
  auto* block = new (std::nothrow) char[90000];
  block[0] = 1;
  return block;
}

template <class Function>
const void* address_of(Function* function) {
  return reinterpret_cast<const void*>(function);
}

void every_kind() {
  report("new", by_new() + 699, address_of(by_new));
  report("aligned", by_aligned_new()->bytes + 1023, address_of(by_aligned_new));
  report("nothrow", by_nothrow_new() + 89999, address_of(by_nothrow_new));
  volatile std::size_t too_large = SIZE_MAX / 4;
  try {
    delete[] new char[too_large];
  } catch (const std::bad_alloc&) {
    report("thrown", by_new(), address_of(by_new));
  }
  show();
}

/// Threads that allocate and free blocks of each other, while this keeps some.
void threads() {
  constexpr int count = 4;
  constexpr int kept = 200;
  std::vector<std::vector<char*>> blocks(count);
  std::vector<std::thread> all;
  for (int t = 0; t < count; ++t)
    all.emplace_back([&own = blocks[static_cast<std::size_t>(t)]] {
      for (int i = 0; i < kept; ++i) {
        own.push_back(by_new());
        delete by_aligned_new();
        delete[] by_nothrow_new();
      }
    });
  for (std::thread& thread : all)
    thread.join();
  for (std::size_t t = 0; t < count; t += 2)
    for (char* block : blocks[t])
      delete[] block;
  for (std::size_t t = 1; t < count; t += 2)
    for (char* block : blocks[t])
      report("kept", block + 600, address_of(by_new));
  show();
}

/// Locks all memory: the log's must neither be read in nor keep the call from working.
void locked() {
  char* block = by_new();
  const bool is_locked = mlockall(MCL_CURRENT) == 0;
  report(is_locked ? "locked" : "refused", block, address_of(by_new));
  show();
}

} // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  if (std::strcmp(arguments[1], "kinds") == 0) every_kind();
  if (std::strcmp(arguments[1], "threads") == 0) threads();
  if (std::strcmp(arguments[1], "locked") == 0) locked();
  return 0;
}
