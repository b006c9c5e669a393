// std::map: insert and look up 1 M keys. args: keys(thousands) look-ups(thousands)
#include "common.h"
#include <map>
using Map = std::map<uint64_t, uint64_t>;
__attribute__((noinline)) static void insert_all(Map& m, size_t n) {
  Rng r{11};
  for (size_t i = 0; i < n; i++)
    m[r()] = i;
}
__attribute__((noinline)) static uint64_t find_all(const Map& m, size_t n, size_t keys) {
  Rng r{11};
  uint64_t sum = 0;
  for (size_t i = 0; i < n; i++) {
    if (i % keys == 0) r = Rng{11};
    auto it = m.find(r());
    if (it != m.end()) sum += it->second;
  }
  return sum;
}
int main(int argc, char** argv) {
  size_t n = arg(argc, argv, 1, 1000) * 1000, lookups = arg(argc, argv, 2, 1000) * 1000;
  Map* m = new Map;
  insert_all(*m, n);
  printf("%llu\n", (unsigned long long)find_all(*m, lookups, n));
}
