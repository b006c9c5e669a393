#include "bench/malloc.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/random.hpp"
#include "kernels/team.hpp"
#include "os/clock.hpp"
#include "os/cpu.hpp"
#include "os/memory.hpp"
#include "os/pages.hpp"

namespace nearfar::bench {

namespace {

constexpr std::size_t max_small = 512;
constexpr std::size_t max_large = 524287;
constexpr std::size_t loop_rounds = 10;
constexpr std::size_t warm_blocks = 4096;
constexpr std::size_t looked_at = 1024; ///< one block in so many is checked

/// Sizes of one thread: a multiplication each, its high bits scaled.
class Sizes {
public:
  Sizes(std::uint64_t seed, std::size_t most) : state_(Random(seed).next()), most_(most) {}
  std::size_t next() { return 1 + below(most_); }
  std::size_t below(std::size_t bound) {
    state_ = next_mmix(state_);
    return scaled(state_, bound);
  }

private:
  std::uint64_t state_;
  std::size_t most_;
};

enum class Outcome : unsigned char { fine, no_memory, lost_byte };

unsigned char tag(std::size_t index) { return static_cast<unsigned char>(index * 37 + 1); }

/// Blocks of one thread, in its part of the table.
template <class A>
class Blocks {
public:
  Blocks(const A& allocator, void** table) : allocator_(allocator), table_(table) {}

  bool make(std::size_t index, std::size_t bytes) {
    void* block = allocator_.allocate(bytes);
    if (block == nullptr) return false;
    *static_cast<volatile unsigned char*>(block) = tag(index);
    table_[index] = block;
    return true;
  }

  void free(std::size_t index) {
    if (index % looked_at == 0)
      lost_ |= *static_cast<volatile unsigned char*>(table_[index]) != tag(index);
    allocator_.release(table_[index]);
  }

  Outcome outcome() const { return lost_ ? Outcome::lost_byte : Outcome::fine; }

private:
  A allocator_;
  void** table_;
  bool lost_ = false;
};

/// small and large are one round of this; the loops are ten.
template <class A>
Outcome bursts(Blocks<A> blocks, std::size_t count, std::size_t rounds, Sizes sizes) {
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i)
      if (!blocks.make(i, sizes.next())) return Outcome::no_memory;
    for (std::size_t i = 0; i < count; ++i)
      blocks.free(i);
  }
  return blocks.outcome();
}

template <class A>
Outcome half_bursts(Blocks<A> blocks, std::size_t count, Sizes sizes) {
  for (std::size_t round = 0; round < loop_rounds; ++round) {
    const std::size_t first = round * count;
    for (std::size_t i = 0; i < count; ++i)
      if (!blocks.make(first + i, sizes.next())) return Outcome::no_memory;
    for (std::size_t i = 0; i < count; i += 2)
      blocks.free(first + i);
  }
  for (std::size_t round = 0; round < loop_rounds; ++round)
    for (std::size_t i = 1; i < count; i += 2)
      blocks.free(round * count + i);
  return blocks.outcome();
}

template <class A>
Outcome replace(Blocks<A>& blocks, std::size_t pairs, Sizes& sizes) {
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::size_t chosen = sizes.below(warm_blocks);
    blocks.free(chosen);
    if (!blocks.make(chosen, sizes.next())) return Outcome::no_memory;
  }
  return blocks.outcome();
}

/// Part of one thread: its number of blocks, its place in the table, and its results.
struct Share {
  std::size_t count = 0;
  void** table = nullptr;
  std::uint64_t seed = 0;
  Outcome outcome = Outcome::fine;
  os::Usage usage;
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t life_cpu_ns = 0; ///< of its thread, from its birth to the end of the work
};

std::size_t slots(MallocTest test, std::size_t count) {
  if (test == MallocTest::warm) return warm_blocks;
  return test == MallocTest::half_free_loop ? count * loop_rounds : count;
}

std::size_t pairs_of(MallocTest test, std::size_t count) {
  const bool loop = test == MallocTest::free_loop || test == MallocTest::half_free_loop;
  return loop ? count * loop_rounds : count;
}

/// Adds the times of work() to the share.
template <class Work>
void timed(Share& share, const Work& work) {
  const os::UsageMeter meter;
  share.start_ns = os::now_ns();
  share.outcome = work();
  share.end_ns = os::now_ns();
  share.usage = meter.since();
  share.life_cpu_ns = os::thread_cpu_ns();
}

template <class A>
void warm_loop(const A& allocator, Share& share) {
  Blocks<A> blocks(allocator, share.table);
  Sizes sizes(share.seed, max_small);
  for (std::size_t i = 0; i < warm_blocks; ++i)
    if (!blocks.make(i, sizes.next())) {
      share.outcome = Outcome::no_memory;
      return;
    }
  share.outcome = replace(blocks, warm_blocks, sizes);
  if (share.outcome != Outcome::fine) return;
  timed(share, [&] { return replace(blocks, share.count, sizes); });
  if (share.outcome == Outcome::no_memory) return;
  for (std::size_t i = 0; i < warm_blocks; ++i)
    blocks.free(i);
}

template <class A>
void run_share(const A& allocator, MallocTest test, Share& share) {
  const Blocks<A> blocks(allocator, share.table);
  const std::size_t rounds = test == MallocTest::free_loop ? loop_rounds : 1;
  switch (test) {
  case MallocTest::small:
    timed(share, [&] { return bursts(blocks, share.count, rounds, Sizes(share.seed, max_small)); });
    break;
  case MallocTest::large:
  case MallocTest::free_loop:
    timed(share, [&] { return bursts(blocks, share.count, rounds, Sizes(share.seed, max_large)); });
    break;
  case MallocTest::half_free_loop:
    timed(share, [&] { return half_bursts(blocks, share.count, Sizes(share.seed, max_large)); });
    break;
  case MallocTest::warm: warm_loop(allocator, share); break;
  }
}

std::vector<Share> split(const MallocWork& work, std::size_t threads, void** table) {
  std::vector<Share> shares(threads);
  std::size_t used = 0;
  for (std::size_t i = 0; i < threads; ++i) {
    shares[i].count = work.count / threads + (i < work.count % threads ? 1 : 0);
    shares[i].table = table + used;
    shares[i].seed = work.seed * 1000 + i;
    used += slots(work.test, shares[i].count);
  }
  return shares;
}

Status run_shares(const Allocator& allocator, MallocTest test, std::vector<Share>& shares,
                  std::span<const int> cpus) {
  const auto one = [&](std::size_t index) {
    std::visit([&](const auto& chosen) { run_share(chosen, test, shares[index]); }, allocator);
  };
  if (cpus.size() == 1) { // no second thread: an allocator may count on that
    if (Status pinned = os::pin_to_cpu(cpus[0]); !pinned) return pinned;
    one(0);
  } else if (Result<kernels::TeamRun> ran = kernels::run_team(cpus, one); !ran) {
    return ran.error();
  }
  for (const Share& share : shares) {
    if (share.outcome == Outcome::no_memory)
      return Error::make(Errc::no_space, "the allocator has no memory left")
          .try_next("use a smaller --blocks");
    if (share.outcome == Outcome::lost_byte)
      return Error::make(Errc::failed_check, "a block lost its first byte before it was freed")
          .try_next("report this to the allocator's makers: two blocks overlap");
  }
  return Done{};
}

/// Sums over the threads. `others_ns` is the CPU time of threads outside of the team.
void sum_up(MallocRun& run, const std::vector<Share>& shares, std::uint64_t others_ns) {
  std::uint64_t first = UINT64_MAX, last = 0;
  for (const Share& share : shares) {
    first = std::min(first, share.start_ns);
    last = std::max(last, share.end_ns);
    run.usage.wall_ns = std::max(run.usage.wall_ns, share.usage.wall_ns);
    run.usage.cpu_ns += share.usage.cpu_ns;
    run.usage.minor_faults += share.usage.minor_faults;
    run.usage.major_faults += share.usage.major_faults;
    run.usage.involuntary_switches += share.usage.involuntary_switches;
  }
  run.wall_seconds = static_cast<double>(last - first) * 1e-9;
  run.cpu_seconds = static_cast<double>(run.usage.cpu_ns + others_ns) * 1e-9;
}

std::size_t beyond(std::size_t bytes, std::size_t before) {
  return bytes > before ? bytes - before : 0;
}

} // namespace

Result<MallocRun> run_malloc_test(const Allocator& allocator, const MallocWork& work,
                                  std::span<const int> cpus) {
  std::size_t wanted = 0;
  for (const Share& share : split(work, cpus.size(), nullptr))
    wanted += slots(work.test, share.count);
  Result<os::MappedRange> table = os::map_range(std::max<std::size_t>(wanted, 1) * sizeof(void*),
                                                os::PageSize::small_4k, -1, false);
  if (!table) return table.error();
  os::prefault(*table);
  std::vector<Share> shares = split(work, cpus.size(), reinterpret_cast<void**>(table->data()));
  Result<os::ProcessMemory> before = os::process_memory();
  if (!before) return before.error();

  const std::uint64_t process_before = os::process_cpu_ns(), own_before = os::thread_cpu_ns();
  if (Status ran = run_shares(allocator, work.test, shares, cpus); !ran) return ran.error();
  const std::uint64_t process_used = os::process_cpu_ns() - process_before;
  std::uint64_t known = os::thread_cpu_ns() - own_before;
  for (const Share& share : shares)
    known += cpus.size() > 1 ? share.life_cpu_ns : 0;

  MallocRun run;
  run.pairs = pairs_of(work.test, work.count);
  sum_up(run, shares, process_used > known ? process_used - known : 0);
  if (work.settle_ns > 0) os::sleep_ns(work.settle_ns);
  Result<os::ProcessMemory> after = os::process_memory();
  if (!after) return after.error();
  run.peak_bytes = beyond(after->peak_bytes, before->resident_bytes);
  run.settled_bytes = beyond(after->resident_bytes, before->resident_bytes);
  return run;
}

} // namespace nearfar::bench
