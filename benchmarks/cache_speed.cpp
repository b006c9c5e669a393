// Accesses a second of the cache layer on one core. Build and run: see benchmarks/cache_speed.sh.
//
// Each figure is the median of nine runs, with the fastest and the slowest. A checksum of hits is
// printed so that nothing is optimized away, and so that a hit rate can be read off.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <vector>

#include "base/random.hpp"
#include "cache/hierarchy.hpp"

using namespace nearfar;
using cache::Access;
using cache::Hierarchy;

namespace {

struct Reference {
  std::uint64_t address;
  Access kind;
};

constexpr std::size_t references = 1 << 16; // replayed often: their own array stays in the L2
constexpr int rounds = 150;
constexpr int runs = 9;

std::vector<Reference> stream(std::uint64_t region_bytes, bool sequential) {
  Random random(1);
  std::vector<Reference> out(references);
  std::uint64_t next = 0;
  for (Reference& r : out) {
    r.address = (sequential ? next : random.below(region_bytes / 8) * 8) % region_bytes;
    r.kind = random.below(4) == 0 ? Access::store : Access::load;
    next += 8;
  }
  return out;
}

void measure(const char* name, const std::vector<cache::Geometry>& levels,
             const std::vector<Reference>& stream) {
  Result<Hierarchy> made = Hierarchy::create(levels);
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().what);
    return;
  }
  Hierarchy h = std::move(*made);
  for (const Reference& r : stream)
    h.access(r.address, 8, r.kind);
  std::array<double, runs> rates{};
  for (double& rate : rates) {
    const auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round)
      for (const Reference& r : stream)
        h.access(r.address, 8, r.kind);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    rate = static_cast<double>(references) * rounds / seconds.count() / 1e6;
  }
  std::sort(rates.begin(), rates.end());
  const cache::LevelCounters& c = h.counters(0);
  std::printf("%-34s %7.1f M/s (%.1f to %.1f), %.2f %% first-level misses\n", name, rates[runs / 2],
              rates.front(), rates.back(),
              100.0 * static_cast<double>(c.load_misses() + c.store_misses()) /
                  static_cast<double>(c.loads() + c.stores()));
}

} // namespace

int main() {
  constexpr cache::Geometry l1{32 << 10, 8};
  constexpr cache::Geometry l2{1 << 20, 16};
  constexpr cache::Geometry l3{28 << 20, 11};
  measure("L1 hits, random in 16 KiB", {l1, l2, l3}, stream(16 << 10, false));
  measure("L1 hits, random in 32 KiB", {l1, l2, l3}, stream(32 << 10, false));
  measure("L1 hits, sequential in 32 KiB", {l1, l2, l3}, stream(32 << 10, true));
  measure("L1 of 48 KiB in 12 ways, random", {{48 << 10, 12}, l2, l3}, stream(48 << 10, false));
  measure("L2 hits, random in 512 KiB", {l1, l2, l3}, stream(512 << 10, false));
  measure("L3 hits and misses, 32 MiB", {l1, l2, l3}, stream(32 << 20, false));
}
