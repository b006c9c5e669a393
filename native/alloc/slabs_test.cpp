// Slabs that threads own, without threads: a SlabList is an owner.
#include "alloc/slabs.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <memory>
#include <nearfar/hmalloc.h>
#include <vector>

#include "alloc/allocator.hpp"

using namespace nearfar::alloc;

namespace {

constexpr unsigned size_class = computed_class(4096);
constexpr std::uint32_t in_slab = class_infos[size_class].blocks;
constexpr std::uint8_t now = 7; ///< tick

/// A class in the near tier with a limit, and two owners.
class OwnedSlabs {
public:
  explicit OwnedSlabs(std::uint64_t max_slabs) {
    hm_free(hm_malloc(HM_NEAR, 1)); // opens the tier
    limit_.reset(max_slabs * class_infos[size_class].spans);
    first.owner = last_owner - 1;
    second.owner = last_owner;
  }
  OwnedSlabs(const OwnedSlabs&) = delete;
  OwnedSlabs& operator=(const OwnedSlabs&) = delete;
  ~OwnedSlabs() { purge(); }

  std::vector<BlockRef> allocate(std::uint32_t wanted, SlabList* owner) {
    std::vector<BlockRef> blocks(wanted);
    bool zeroed = false;
    blocks.resize(
        slabs_->allocate(source_, size_class, blocks.data(), wanted, cached, zeroed, owner));
    return blocks;
  }
  void free(const std::vector<BlockRef>& blocks, const SlabList* owner) {
    slabs_->free(window(), blocks.data(), static_cast<std::uint32_t>(blocks.size()), now, owner);
  }
  void disown(SlabList& owner) { slabs_->disown(window(), owner); }
  void purge() { slabs_->purge(source_, now, true); }
  std::uint16_t owner_of(BlockRef block) const { return window().span_of(block.block).owner(); }
  std::uint64_t slabs() const { return limit_.used() / class_infos[size_class].spans; }

  SlabList first, second;

private:
  Window& window() const { return source_.runs.window(); }

  SpanLimit limit_;
  SlabSource source_{process_allocator.tiers[0].runs, limit_, 0};
  std::unique_ptr<SlabClass> slabs_ = std::make_unique<SlabClass>();
};

std::vector<BlockRef> part(const std::vector<BlockRef>& blocks, std::size_t from, std::size_t end) {
  return {blocks.begin() + static_cast<std::ptrdiff_t>(from),
          blocks.begin() + static_cast<std::ptrdiff_t>(end)};
}

bool overlap(const std::vector<BlockRef>& some, const std::vector<BlockRef>& others) {
  return std::any_of(some.begin(), some.end(), [&](const BlockRef& one) {
    return std::any_of(others.begin(), others.end(),
                       [&](const BlockRef& other) { return one.block == other.block; });
  });
}

} // namespace

TEST_CASE("owners are served from slabs of their own") {
  OwnedSlabs slabs(8);
  const std::vector<BlockRef> ones = slabs.allocate(3, &slabs.first);
  const std::vector<BlockRef> twos = slabs.allocate(3, &slabs.second);
  CHECK(slabs.slabs() == 2);
  for (const BlockRef& one : ones)
    CHECK(slabs.owner_of(one) == slabs.first.owner);
  for (const BlockRef& two : twos)
    CHECK(slabs.owner_of(two) == slabs.second.owner);
  const std::vector<BlockRef> more = slabs.allocate(in_slab - 3, &slabs.first);
  CHECK(more.size() == in_slab - 3);
  CHECK(slabs.slabs() == 2);
  slabs.free(ones, &slabs.first);
  slabs.free(more, &slabs.first);
  slabs.free(twos, &slabs.second);
}

TEST_CASE("a slab without live blocks has no owner, and serves the next one") {
  OwnedSlabs slabs(8);
  const std::vector<BlockRef> blocks = slabs.allocate(in_slab, &slabs.first);
  slabs.free(blocks, &slabs.first);
  CHECK(slabs.owner_of(blocks[0]) == no_owner);
  const std::vector<BlockRef> again = slabs.allocate(1, &slabs.second);
  CHECK(slabs.slabs() == 1);
  CHECK(slabs.owner_of(again[0]) == slabs.second.owner);
  slabs.free(again, &slabs.second);
}

TEST_CASE("a slab leaves its owner when another thread has freed half of it") {
  OwnedSlabs slabs(8);
  const std::vector<BlockRef> blocks = slabs.allocate(in_slab, &slabs.first);
  slabs.free(part(blocks, 0, in_slab / 2 - 1), &slabs.second);
  CHECK(slabs.owner_of(blocks[0]) == slabs.first.owner);
  slabs.free(part(blocks, in_slab / 2 - 1, in_slab / 2), &slabs.second);
  CHECK(slabs.owner_of(blocks[0]) == no_owner);
  const std::vector<BlockRef> taken = slabs.allocate(in_slab / 2, &slabs.second);
  CHECK(slabs.slabs() == 1);
  CHECK(slabs.owner_of(blocks[0]) == slabs.second.owner);
  CHECK_FALSE(overlap(taken, part(blocks, in_slab / 2, in_slab)));
  slabs.free(part(blocks, in_slab / 2, in_slab), &slabs.first); // the previous owner
  slabs.free(taken, &slabs.second);
}

TEST_CASE("its own frees leave a slab with its owner until it is empty") {
  OwnedSlabs slabs(8);
  const std::vector<BlockRef> blocks = slabs.allocate(in_slab, &slabs.first);
  slabs.free(part(blocks, 1, in_slab), &slabs.first);
  CHECK(slabs.owner_of(blocks[0]) == slabs.first.owner);
  slabs.free(part(blocks, 0, 1), &slabs.first);
  CHECK(slabs.owner_of(blocks[0]) == no_owner);
}

TEST_CASE("an owner that leaves passes its slabs on, full ones included") {
  OwnedSlabs slabs(8);
  const std::vector<BlockRef> blocks = slabs.allocate(2 * in_slab + 1, &slabs.first);
  REQUIRE(blocks.size() == in_slab); // one slab for each call
  const std::vector<BlockRef> more = slabs.allocate(1, &slabs.first);
  slabs.disown(slabs.first);
  CHECK(slabs.owner_of(blocks[0]) == no_owner);
  CHECK(slabs.owner_of(more[0]) == no_owner);
  CHECK(slabs.first.head == nullptr);
  slabs.disown(slabs.first); // has no effect
  const std::vector<BlockRef> taken = slabs.allocate(in_slab - 1, &slabs.second);
  CHECK(slabs.slabs() == 2);
  CHECK(slabs.owner_of(more[0]) == slabs.second.owner);
  slabs.free(blocks, &slabs.second);
  slabs.free(more, &slabs.second);
  slabs.free(taken, &slabs.second);
}

TEST_CASE("a full tier serves threads from slabs of other owners") {
  OwnedSlabs slabs(1);
  const std::vector<BlockRef> ones = slabs.allocate(1, &slabs.first);
  const std::vector<BlockRef> stolen = slabs.allocate(in_slab, &slabs.second);
  CHECK(stolen.size() == in_slab - 1);
  CHECK_FALSE(overlap(ones, stolen));
  CHECK(slabs.owner_of(stolen[0]) == slabs.first.owner);
  CHECK(slabs.allocate(1, &slabs.second).empty());
  CHECK(slabs.allocate(1, nullptr).empty());
  slabs.free(stolen, &slabs.second); // half of it and more
  CHECK(slabs.owner_of(ones[0]) == no_owner);
  slabs.free(ones, &slabs.first);
}

TEST_CASE("a purge returns the memory of owned slabs, and of empty ones all") {
  OwnedSlabs slabs(8);
  const std::vector<BlockRef> ones = slabs.allocate(in_slab, &slabs.first);
  const std::vector<BlockRef> twos = slabs.allocate(in_slab, &slabs.second);
  slabs.free(part(ones, 1, in_slab), &slabs.first);
  slabs.free(twos, &slabs.second);
  slabs.purge();
  CHECK(slabs.slabs() == 1);
  CHECK(slabs.owner_of(ones[0]) == no_owner);
  slabs.free(part(ones, 0, 1), &slabs.first);
  slabs.purge();
  CHECK(slabs.slabs() == 0);
}
