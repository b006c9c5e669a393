// Memory of a structure under a benchmark: a pool with its medium, or DRAM with a root.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "persist/pool.hpp"
#include "structures/persistence_policy.hpp"
#include "tier/mapping.hpp"

namespace nearfar::bench {

inline Result<persist::Pool> make_pool(const tier::Spec& tier, const persist::Layout& layout,
                                       std::size_t bytes, std::size_t root_bytes) {
  persist::PoolOptions options;
  options.bytes = bytes;
  options.root_bytes = root_bytes;
  options.temporary = true;
  return persist::Pool::create(tier, layout, options);
}

template <class PolicyOfPool>
struct InPool {
  using PersistencePolicy = PolicyOfPool;
  std::unique_ptr<persist::Pool> pool; // the medium knows where it is
  std::unique_ptr<PersistencePolicy> medium;

  static Result<InPool> create(const tier::Spec& tier, const persist::Layout& layout,
                               std::size_t bytes, std::size_t root_bytes) {
    Result<persist::Pool> pool = make_pool(tier, layout, bytes, root_bytes);
    if (!pool) return pool.error();
    InPool made;
    made.pool = std::make_unique<persist::Pool>(std::move(*pool));
    made.medium = std::make_unique<PersistencePolicy>(*made.pool);
    return made;
  }
  std::byte* root() const { return pool->root(); }
  std::span<const std::byte> memory() const { return {pool->base(), pool->bytes()}; }
};

/// Whether a volatile counterpart can be on this tier. Errors: bad_input.
inline Status check_counterpart(const tier::Spec& tier) {
  if (tier.kind->maps != tier::Maps::memory)
    return Error::make(Errc::bad_input, "a volatile counterpart cannot lie on tier %s",
                       tier.kind->name)
        .try_next("use dram or numa:N, or a type that lies in a pool");
  if (!tier.paced() && tier.pages == os::PageSize::system) return Done{};
  return Error::make(Errc::bad_input, "a volatile counterpart can choose neither pages nor pace")
      .try_next("use dram or numa:N as they are");
}

/// On tier dram in memory of the kernel's choice, on numa:N on that node.
struct InDram {
  using PersistencePolicy = structures::Dram;
  std::unique_ptr<PersistencePolicy> medium;
  std::uint64_t head = 0; ///< link of the root

  /// Fails with no_space if the node has less than `bytes` free, because touching more bound memory
  /// would end the process.
  static Result<InDram> create(const tier::Spec& tier, std::size_t bytes, std::size_t root_bytes) {
    Result<std::size_t> room = tier::capacity(tier);
    if (!room) return room.error();
    if (bytes > *room)
      return Error::make(Errc::no_space, "%zu bytes do not fit in tier %s, which has %zu free",
                         bytes, tier.kind->name, *room)
          .try_next("use fewer entries");
    InDram made;
    made.medium = std::make_unique<PersistencePolicy>(tier.node);
    if (Status s = made.medium->allocate(&made.head, root_bytes, true); !s) return s.error();
    return made;
  }
  std::byte* root() const { return medium->at<std::byte>(head); }
  std::span<const std::byte> memory() const { return {}; }
};

} // namespace nearfar::bench
