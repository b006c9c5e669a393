// Shared by the training programs: a deterministic generator and a result that is printed.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
struct Rng {
  uint64_t s;
  uint64_t operator()() {
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return s;
  }
};
inline size_t arg(int argc, char** argv, int i, size_t fallback) {
  return argc > i ? strtoull(argv[i], nullptr, 0) : fallback;
}
