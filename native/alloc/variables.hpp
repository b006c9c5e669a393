// Global variables in a tier (nearfar/hmalloc_var.h), and their copies for the child of a fork.
//
// Thread safety  place() while no thread uses the variables.
#pragma once

#include <cstddef>

#include "alloc/lock_order.hpp"
#include "alloc/tier_heap.hpp"
#include "base/result.hpp"
#include "os/lock.hpp"

namespace nearfar::alloc {

class PlacedVariables {
public:
  /// Moves the pages [begin, begin + bytes) to a tier with their contents, once per range. Errors:
  /// bad_input (not whole pages), no_space.
  Status place(TierHeap& tier, std::byte* begin, std::size_t bytes, std::uint8_t now);

  /// Around a fork, under the lock: variables in a shared file are copied for the child.
  void copy_for_child() NEARFAR_REQUIRES(lock);
  void drop_copies() NEARFAR_REQUIRES(lock);
  void adopt_copies() NEARFAR_REQUIRES(lock);

  os::Lock lock NEARFAR_LOCK_LEVEL(variables);

private:
  struct Range {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    bool in_file = false;
    std::byte* copy = nullptr; ///< during a fork
  };
  static constexpr std::size_t max_ranges = 64; ///< programs and libraries with such variables

  Range ranges_[max_ranges] NEARFAR_GUARDED_BY(lock);
  std::size_t count_ NEARFAR_GUARDED_BY(lock) = 0;
};

} // namespace nearfar::alloc
