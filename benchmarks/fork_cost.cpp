// CPU time of a fork of a heap with MIB of touched blocks, and of a copy of as many bytes to new
// memory. Run by benchmarks/fork_cost.sh. The child ends at once.
//
// Prints the median of the forks and of the copies, in ms. They are made in turns: both have the
// same noise.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/random.hpp"

namespace {

constexpr int rounds = 7;

double ms(const timeval& t) {
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) * 1e-3;
}

/// Of this process and its children that ended.
double cpu_ms() {
  rusage own{}, children{};
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &children);
  return ms(own.ru_utime) + ms(own.ru_stime) + ms(children.ru_utime) + ms(children.ru_stime);
}

/// Most blocks have less than 1 kB, a quarter up to 60 kB.
std::size_t allocate(std::size_t bytes) {
  nearfar::Random random(1);
  std::size_t done = 0;
  while (done < bytes) {
    const std::size_t size = 16 + random.below(random.below(4) != 0 ? 1000 : 60'000);
    void* block = std::malloc(size);
    if (block == nullptr) break;
    std::memset(block, 1, size);
    done += size;
  }
  return done;
}

double fork_once() {
  const double before = cpu_ms();
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) std::exit(1);
  return cpu_ms() - before;
}

double copy_once(const char* from, std::size_t bytes) {
  const double before = cpu_ms();
  void* to = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (to == MAP_FAILED) std::exit(1);
  madvise(to, bytes, MADV_NOHUGEPAGE);
  std::memcpy(to, from, bytes);
  munmap(to, bytes);
  return cpu_ms() - before;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

} // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const std::size_t bytes = allocate(std::strtoull(arguments[1], nullptr, 10) << 20);
  void* from = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (from == MAP_FAILED) return 1;
  std::memset(from, 1, bytes);
  madvise(from, bytes, MADV_DONTFORK);
  std::vector<double> forks, copies;
  for (int i = 0; i < rounds; ++i) {
    forks.push_back(fork_once());
    copies.push_back(copy_once(static_cast<const char*>(from), bytes));
  }
  std::printf("%.1f %.1f\n", median(forks), median(copies));
  return 0;
}
