// Stores to the pool, the file argv[1], in functions of the C++ library, inlined or not.
#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <functional>
#include <sys/mman.h>
#include <unistd.h>

struct Pool {
  alignas(64) std::atomic<long> count;
  alignas(64) long filled[8];
  alignas(64) long each[8];
  alignas(64) long sorted[8];
};

static inline void add(std::atomic<long>& count) {
  count.fetch_add(3); // STORED
}

int main(int, char** arguments) {
  const int file = open(arguments[1], O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(Pool)) != 0) return 1;
  void* const at = mmap(nullptr, sizeof(Pool), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return 1;
  auto* const pool = static_cast<Pool*>(at);
  add(pool->count);
  std::fill(pool->filled, pool->filled + 8, 7L); // STORED
  const auto set = [](long& value) {
    value = 5; // STORED
  };
  std::for_each(pool->each, pool->each + 8, set);
  long from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto is_odd = [](long value) { return value % 2 != 0; };
  std::copy_if(from, from + 8, pool->sorted, is_odd); // overwritten
  std::sort(pool->sorted, pool->sorted + 4, std::greater<>{}); // STORED
}
