// Bandwidth of independent accesses by mix, order, size and number of threads.
//
// Thread safety  one AccessProbe a thread; its runs use the team they are given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "kernels/access.hpp"
#include "kernels/team.hpp"
#include "tier/mapping.hpp"

namespace nearfar::probe {

struct AccessPattern {
  kernels::Order order = kernels::Order::random;
  std::size_t block_bytes = 64; ///< of one access; a multiple of 64
  std::size_t stride_bytes = 0; ///< distance of strided accesses; a multiple of block_bytes
  unsigned reads = 1;
  unsigned writes = 0;
  bool nontemporal = false;
};

struct AccessRun {
  double seconds = 0;
  std::size_t bytes = 0; ///< accessed bytes: block_bytes for each read and each write
  std::vector<kernels::Member> members;
};

class AccessProbe {
public:
  /// Maps `bytes` of the tier; each of `cpus` first touches its own slice.
  static Result<AccessProbe> create(const tier::Spec& spec, std::size_t bytes,
                                    std::span<const int> cpus);

  /// Each of `cpus` accesses its own slice for about `nanoseconds`. `seed` sets the random order.
  /// Errors: bad_input (a pattern that does not fit), failed_check (a read was not executed).
  Result<AccessRun> run(const AccessPattern& pattern, std::span<const int> cpus,
                        std::uint64_t nanoseconds, std::uint64_t seed);

private:
  explicit AccessProbe(tier::Mapping mapping);
  tier::Mapping mapping_;
};

/// Whether the pattern can be run on `bytes` of memory; bad_input with the reason if not.
Status check_pattern(const AccessPattern& pattern, std::size_t bytes);

/// The loop of a pattern over a slice of memory.
kernels::AccessLoop loop_over(const AccessPattern& pattern, std::byte* base, std::size_t bytes,
                              std::uint64_t seed);

} // namespace nearfar::probe
