// Random operations, checked against a model of all live blocks.
#include <nearfar/hmalloc.h>

#include <cstdint>
#include <cstring>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "test_support.hpp"

namespace {

using nearfar::Random;

struct Block {
  std::size_t size = 0;
  unsigned char fill = 0;
  int tier = 0;
};

/// Live blocks by address.
class Model {
public:
  Model(std::uint64_t seed, std::vector<int> tiers) : random_(seed), tiers_(std::move(tiers)) {}
  ~Model() {
    while (!blocks_.empty())
      release();
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void step() {
    switch (random_.below(16)) {
    case 0: return resize();
    case 1: return move();
    case 2: return allocate_zeroed();
    case 3: return allocate_aligned();
    case 4:
      if (random_.below(50) == 0) hm_trim(any_tier());
      return;
    default:
      if (blocks_.size() < 2000 && random_.below(2) == 0)
        allocate();
      else
        release();
    }
  }
  std::size_t wrong() const { return wrong_; }

private:
  int any_tier() { return tiers_[random_.below(tiers_.size())]; }
  std::size_t any_size() { // all orders of magnitude up to 2 MiB are equally likely
    return random_.below(std::size_t{2} << random_.below(21));
  }
  void expect(bool holds) { wrong_ += holds ? 0 : 1; }

  void adopt(void* block, std::size_t size, int tier) {
    expect(block != nullptr);
    if (block == nullptr) return;
    const auto at = reinterpret_cast<std::uintptr_t>(block);
    expect(hm_tier_of(block) == tier);
    expect(hm_usable_size(block) >= size);
    const auto next = blocks_.lower_bound(at);
    expect(next == blocks_.end() || next->first >= at + size);
    expect(next == blocks_.begin() || std::prev(next)->first + std::prev(next)->second.size <= at);
    const auto fill = static_cast<unsigned char>(random_.next());
    std::memset(block, fill, size);
    blocks_[at] = {size, fill, tier};
  }
  void check(std::uintptr_t at, std::size_t size, unsigned char fill) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(at);
    for (std::size_t i = 0; i < size; i += i + 64 < size ? 61 : 1)
      expect(bytes[i] == fill);
  }
  std::map<std::uintptr_t, Block>::iterator any_block() {
    const auto at = blocks_.lower_bound(last_ + random_.below(std::uint64_t{1} << 24));
    const auto found = at == blocks_.end() ? blocks_.begin() : at;
    last_ = found->first;
    return found;
  }

  void allocate() {
    const std::size_t size = any_size();
    const int tier = any_tier();
    adopt(hm_malloc(tier, size), size, tier);
  }
  void allocate_zeroed() {
    const std::size_t size = any_size();
    const int tier = any_tier();
    void* block = hm_calloc(tier, 1, size);
    if (block != nullptr) check(reinterpret_cast<std::uintptr_t>(block), size, 0);
    adopt(block, size, tier);
  }
  void allocate_aligned() {
    const std::size_t alignment = std::size_t{1} << random_.below(22);
    const std::size_t size = any_size() / 4;
    const int tier = any_tier();
    void* block = hm_memalign(tier, alignment, size);
    expect(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
    adopt(block, size, tier);
  }
  void release() {
    if (blocks_.empty()) return;
    const auto it = any_block();
    check(it->first, it->second.size, it->second.fill);
    hm_free(reinterpret_cast<void*>(it->first));
    blocks_.erase(it);
  }
  void resize() {
    if (blocks_.empty()) return;
    const auto it = any_block();
    const auto [at, old] = *it;
    blocks_.erase(it);
    const std::size_t size = any_size() + 1;
    void* block = hm_realloc(HM_KEEP, reinterpret_cast<void*>(at), size);
    if (block != nullptr)
      check(reinterpret_cast<std::uintptr_t>(block), std::min(size, old.size), old.fill);
    adopt(block, size, old.tier);
  }
  void move() {
    if (blocks_.empty()) return;
    const auto it = any_block();
    const auto [at, old] = *it;
    blocks_.erase(it);
    const int tier = any_tier();
    void* block = hm_move(reinterpret_cast<void*>(at), tier);
    if (block != nullptr) check(reinterpret_cast<std::uintptr_t>(block), old.size, old.fill);
    adopt(block, old.size, tier);
  }

  Random random_;
  std::vector<int> tiers_;
  std::map<std::uintptr_t, Block> blocks_;
  std::uintptr_t last_ = 0;
  std::size_t wrong_ = 0;
};

} // namespace

TEST_CASE("random operations keep blocks disjoint, intact and in their tier") {
  const nearfar::test::Folder folder;
  const int made = hm_tier_find("shared"); // created by another test case
  const int shared = made >= 0 ? made : hm_tier_create("shared", "shm:,capacity=512MiB");
  REQUIRE(shared >= 0);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Model model(seed, {HM_NEAR, shared});
    for (int i = 0; i < 6000; ++i)
      model.step();
    CHECK(model.wrong() == 0);
  }
  hm_tier_stats stats;
  REQUIRE(hm_stats(shared, &stats) == 0);
  CHECK(stats.live_bytes == 0);
  CHECK(stats.allocations == stats.frees);
}
