// Where a structure under a benchmark lies: a pool with its medium, or DRAM with a root.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "persist/pool.hpp"
#include "structures/medium.hpp"

namespace nearfar::bench {

inline Result<persist::Pool> make_pool(const tier::Spec& tier, const persist::Layout& layout,
                                       std::size_t bytes, std::size_t root_bytes) {
  return persist::Pool::create(tier, layout, {bytes, root_bytes});
}

template <class MediumOfPool>
struct InPool {
  using Medium = MediumOfPool;
  std::unique_ptr<persist::Pool> pool; // the medium knows where it is
  std::unique_ptr<Medium> medium;

  static Result<InPool> create(const tier::Spec& tier, const persist::Layout& layout,
                               std::size_t bytes, std::size_t root_bytes) {
    Result<persist::Pool> pool = make_pool(tier, layout, bytes, root_bytes);
    if (!pool) return pool.error();
    InPool made;
    made.pool = std::make_unique<persist::Pool>(std::move(*pool));
    made.medium = std::make_unique<Medium>(*made.pool);
    return made;
  }
  std::byte* root() const { return pool->root(); }
  std::span<const std::byte> memory() const { return {pool->base(), pool->bytes()}; }
};

struct InDram {
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  using Medium = structures::Dram;
  std::unique_ptr<Medium> medium = std::make_unique<Medium>();
  std::unique_ptr<Line[]> head;

  explicit InDram(std::size_t root_bytes)
      : head(std::make_unique<Line[]>((root_bytes + sizeof(Line) - 1) / sizeof(Line))) {}
  std::byte* root() const { return head[0].bytes; }
  std::span<const std::byte> memory() const { return {}; }
};

} // namespace nearfar::bench
