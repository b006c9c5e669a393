// The four malloc tests of the Seoul thesis, and a warm loop, with any allocator of this process.
//
//   small           count blocks of 1–512 bytes, then all freed
//   large           count blocks of 1–524287 bytes, then all freed
//   free_loop       ten rounds of: count blocks of 1–524287 bytes, all freed
//   half_free_loop  ten rounds of: count blocks of 1–524287 bytes, the even ones freed; the odd
//                   ones of all rounds at the end
//   warm            count times: one of 4096 live blocks of 1–512 bytes, chosen at random, freed
//                   and allocated again, after as many untimed rounds as there are blocks
//
// The first byte of each block is written, and that of one in 1024 read again before it is freed.
// The count is split over the threads; each frees its own blocks. With one thread, the test runs in
// the calling thread, so that a single-threaded program is measured.
//
// Thread safety  one test at a time in a process, because it measures memory of the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "bench/allocator.hpp"
#include "os/usage.hpp"

namespace nearfar::bench {

enum class MallocTest : unsigned char { small, large, free_loop, half_free_loop, warm };

/// As the command line writes them, in the order of the values.
inline constexpr std::string_view malloc_tests[] = {"small", "large", "free-loop", "half-free-loop",
                                                    "warm"};

struct MallocWork {
  MallocTest test = MallocTest::small;
  std::size_t count = 1'000'000;
  std::uint64_t seed = 1;
  std::uint64_t settle_ns = 0; ///< how long after the last free its memory is looked at again
};

struct MallocRun {
  double wall_seconds = 0; ///< from the first thread's start to the last one's end
  double cpu_seconds = 0;  ///< of all threads, threads of the allocator's own included
  std::size_t pairs = 0;   ///< blocks allocated and freed while timed
  /// Beyond what the process held before its first block, the table of blocks included there.
  std::size_t peak_bytes = 0;
  std::size_t settled_bytes = 0; ///< the same, settle_ns after the last free
  os::Usage usage;               ///< of all timed threads together; wall_ns is the longest one's
};

/// Runs one test on the threads of `cpus`. Errors: no_space (an allocation failed), failed_check (a
/// block lost its first byte), those of run_team and process_memory.
Result<MallocRun> run_malloc_test(const Allocator& allocator, const MallocWork& work,
                                  std::span<const int> cpus);

} // namespace nearfar::bench
