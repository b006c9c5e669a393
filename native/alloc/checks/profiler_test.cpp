// The functions of a heap profiler, in a program of their own, because defining them turns them on.
#include <nearfar/hmalloc.h>

#include <atomic>
#include <cstdint>
#include <doctest/doctest.h>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "test_support.hpp"

namespace {

using nearfar::Random;

struct Reported {
  std::size_t bytes;
  const void* caller;
};

/// Live blocks as they were reported. Its memory is that of the C library.
struct Profiler {
  std::mutex mutex;
  std::unordered_map<const void*, Reported> live;
  std::uint64_t allocations = 0;
  int wrong = 0; ///< calls that do not follow from the earlier ones

  void allocated(const void* block, std::size_t bytes, const void* caller) {
    const std::lock_guard guard(mutex);
    ++allocations;
    if (!live.try_emplace(block, Reported{bytes, caller}).second) ++wrong;
    if (bytes > hm_usable_size(block)) ++wrong;
  }
  void freed(const void* block, std::size_t usable_bytes) {
    const std::lock_guard guard(mutex);
    const auto found = live.find(block);
    if (found == live.end() || found->second.bytes > usable_bytes) ++wrong;
    if (usable_bytes != hm_usable_size(block)) ++wrong;
    if (found != live.end()) live.erase(found);
  }
  std::size_t count() {
    const std::lock_guard guard(mutex);
    return live.size();
  }
  /// Whether a block is live with so many bytes, and was allocated by code near `function`.
  bool has(const void* block, std::size_t bytes, const void* function) {
    constexpr std::uintptr_t longest_function = 4096;
    const std::lock_guard guard(mutex);
    const auto found = live.find(block);
    return found != live.end() && found->second.bytes == bytes &&
           reinterpret_cast<std::uintptr_t>(found->second.caller) -
                   reinterpret_cast<std::uintptr_t>(function) <
               longest_function;
  }
};

Profiler& profiler() {
  static Profiler one;
  return one;
}

int far_tier() {
  static const int tier = hm_tier_create("far", "dram,capacity=256MiB");
  return tier;
}

} // namespace

extern "C" void hm_on_allocate(const void* block, std::size_t bytes, const void* caller,
                               const void*) noexcept {
  profiler().allocated(block, bytes, caller);
}
extern "C" void hm_on_free(const void* block, std::size_t usable_bytes) noexcept {
  profiler().freed(block, usable_bytes);
}

namespace {

enum class Call { simple, by_tier, zeroed, aligned, grown, moved, in_heap, zeroed_in_heap };
constexpr int call_count = 8;

[[gnu::noinline]] void* allocate(Call call, hm_tier tier, hm_heap* heap, std::size_t bytes) {
  switch (call) {
  case Call::simple: return hmalloc(bytes, tier);
  case Call::by_tier: return hm_malloc(tier, bytes);
  case Call::zeroed: return hm_calloc(tier, 1, bytes);
  case Call::aligned: return hm_memalign(tier, 256, bytes);
  case Call::grown: return hm_realloc(tier, hm_malloc(tier, bytes / 2), bytes);
  case Call::moved: return hm_move(hm_malloc(HM_NEAR, bytes), far_tier());
  case Call::in_heap: return hm_heap_malloc(heap, bytes);
  case Call::zeroed_in_heap: return hm_heap_calloc(heap, 1, bytes);
  }
  return nullptr;
}

constexpr std::size_t shared_slots = 64;
std::atomic<void*> shared[shared_slots];

/// Allocates and frees; every eighth block is left to the thread that finds it.
void churn(std::uint64_t seed, int steps) {
  Random random(seed);
  std::vector<void*> own(100);
  hm_heap* heap = hm_heap_create(HM_NEAR, 0);
  for (int step = 0; step < steps; ++step) {
    const auto call = static_cast<Call>(random.below(call_count));
    const std::size_t bytes = 1 + random.below(std::size_t{1} << (4 + random.below(17)));
    void* block = allocate(call, random.below(2) == 0 ? HM_NEAR : far_tier(), heap, bytes);
    const bool of_heap = call == Call::in_heap || call == Call::zeroed_in_heap;
    if (!of_heap && random.below(8) == 0)
      hm_free(shared[random.below(shared_slots)].exchange(block));
    else if (!of_heap || random.below(2) == 0)
      hm_free(std::exchange(own[random.below(own.size())], block));
  }
  for (void* block : own)
    hm_free(block);
  hm_heap_destroy(heap); // with the rest of its blocks
}

} // namespace

TEST_CASE("a heap profiler is called with size and caller by each function that allocates") {
  hm_heap* heap = hm_heap_create(HM_NEAR, 0);
  REQUIRE(far_tier() == HM_FAR);
  for (int call = 0; call < call_count; ++call)
    for (const std::size_t bytes : {100ul, 33'000ul, 700'000ul}) {
      INFO("call ", call, ", bytes ", bytes);
      void* block = allocate(static_cast<Call>(call), HM_NEAR, heap, bytes);
      REQUIRE(block != nullptr);
      const bool whole = static_cast<Call>(call) == Call::moved; // with all of its block
      const std::size_t reported = whole ? hm_usable_size(block) : bytes;
      CHECK(profiler().has(block, reported, reinterpret_cast<const void*>(allocate)));
      CHECK(profiler().count() == 1);
      hm_free(block);
      CHECK(profiler().count() == 0);
    }
  hm_heap_destroy(heap);
  CHECK(profiler().wrong == 0);
}

TEST_CASE(
    "a heap profiler keeps a block whose resizing failed, and hears of no failed allocation") {
  constexpr std::size_t too_large = std::size_t{1} << 60;
  void* block = hm_malloc(HM_NEAR, 100);
  const std::uint64_t before = profiler().allocations;
  CHECK(hm_malloc(HM_NEAR, too_large) == nullptr);
  const volatile std::size_t count = SIZE_MAX / 2; // the compiler would refuse the constant
  CHECK(hm_calloc(HM_NEAR, count, 4) == nullptr);
  CHECK(profiler().allocations == before);
  CHECK(hm_realloc(HM_NEAR, block, too_large) == nullptr);
  CHECK(profiler().count() == 1);
  CHECK(hm_realloc(HM_NEAR, block, 0) == nullptr);
  CHECK(profiler().count() == 0);
  CHECK(profiler().wrong == 0);
}

TEST_CASE("each block of concurrent threads is reported once, and freed once") {
  constexpr int threads = 4;
  constexpr int steps = 5000;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back(churn, static_cast<std::uint64_t>(i) + 1, steps);
  for (std::thread& thread : running)
    thread.join();
  for (std::atomic<void*>& slot : shared)
    hm_free(slot.exchange(nullptr));
  CHECK(profiler().allocations >= threads * steps);
  CHECK(profiler().count() == 0);
  CHECK(profiler().wrong == 0);
}

TEST_CASE("a heap profiler is called in a forked child") {
  void* block = hm_malloc(HM_NEAR, 1000);
  const int status = nearfar::test::status_in_child([block] {
    hm_free(block);
    return profiler().count() == 0 && profiler().wrong == 0;
  });
  CHECK(status == 0);
  CHECK(profiler().count() == 1);
  hm_free(block);
}
