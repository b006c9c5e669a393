// The timed loops of bench/map.hpp, the same for every map, which they access through an adaptor.
//
// An adaptor has
//   bool insert(key), bool remove(key)   whether the key was new, or was there
//   std::uint64_t get(key)               the first word of its value, map_word(key); 0 if not there
//   std::uint64_t get_many(keys)         number of at most map_batch keys with the right values;
//                                        optional
//   const Error* failure()               of a failed operation
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "bench/map.hpp"
#include "os/clock.hpp"
#include "os/tsc.hpp"

namespace nearfar::bench {

/// The value of a key; never 0, because keys have at most 63 bits.
inline std::uint64_t map_word(std::uint64_t key) { return ~key; }

/// Results of one thread.
struct MapShare {
  Histogram ticks;
  std::uint64_t sum_ticks = 0;
  std::uint64_t min_ticks = ~std::uint64_t{0};
  std::uint64_t worst_cpu_ns = 0;
  storelog::Counters counted;
  RegionEdge edge; ///< notified of the region
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::optional<Error> failure;
};

/// The first failure that any thread met.
class FirstFailure {
public:
  /// Always false.
  bool fail(const Error& error) {
    if (!failing_.exchange(true)) {
      failure_ = error;
      failed_ = true;
    }
    return false;
  }
  bool took(Result<bool> done) { return done ? *done : fail(done.error()); }
  const Error* get() const { return failed_.load() ? &failure_ : nullptr; }

private:
  std::atomic<bool> failing_{false};
  std::atomic<bool> failed_{false};
  Error failure_;
};

/// A map of any type.
class MapSubject {
public:
  virtual ~MapSubject() = default;
  /// Runs a pass over some keys on the calling thread.
  virtual void run(MapOperation operation, MapPass pass, std::span<const std::uint64_t> keys,
                   MapShare& share) = 0;
  /// Inserts an entry and removes it, until `ended`. Returns the number of rounds; 0: it failed.
  virtual std::uint64_t write_until(const std::atomic<bool>& ended) = 0;
  virtual std::span<const std::byte> pool() const = 0; ///< empty for a map in DRAM
};

/// The least key of a writer: keys of the operations have at most 63 bits.
inline constexpr std::uint64_t first_writer_key = std::uint64_t{1} << 63;

inline Error wrong_answer(const char* operation) {
  return Error::make(Errc::failed_check, "the map gave a wrong answer to %s", operation)
      .try_next("report this with the command you ran");
}

/// One operation on one key; 1 if its result is right.
template <MapOperation operation, class Adaptor>
std::uint64_t operate(Adaptor& map, std::uint64_t key) {
  if constexpr (operation == MapOperation::insert) return map.insert(key) ? 1 : 0;
  if constexpr (operation == MapOperation::remove) return map.remove(key) ? 1 : 0;
  return map.get(key) == map_word(key) ? 1 : 0;
}

/// The CPU time of the worst operation, from few readings of a clock that is a system call. It is
/// at most the operation's wall time, and at most the time that the thread used since the last
/// reading, at most 64 operations ago: the lesser of both is reported, an upper bound.
class WorstCpu {
public:
  static constexpr std::uint64_t operations_a_reading = 64;

  WorstCpu() : tick_ns_(os::tsc_tick_ns()), last_ns_(os::thread_cpu_ns()) {}
  void read() { last_ns_ = os::thread_cpu_ns(); }
  /// True if it read the clock, which took time.
  bool look_at(std::uint64_t ticks) {
    if (ticks <= worst_ticks_) return false;
    const auto wall_ns = static_cast<std::uint64_t>(static_cast<double>(ticks) * tick_ns_);
    const std::uint64_t used_ns = os::thread_cpu_ns() - last_ns_;
    const std::uint64_t bound_ns = used_ns < wall_ns ? used_ns : wall_ns;
    if (bound_ns > worst_ns_) worst_ns_ = bound_ns;
    worst_ticks_ = static_cast<std::uint64_t>(static_cast<double>(worst_ns_) / tick_ns_);
    read();
    return true;
  }
  std::uint64_t worst_ns() const { return worst_ns_; }

private:
  double tick_ns_;
  std::uint64_t last_ns_;
  std::uint64_t worst_ns_ = 0;
  std::uint64_t worst_ticks_ = 0;
};

/// As in pmembench: one reading of the clock for each operation, whose time is that since the last
/// reading. The time of a reading itself is subtracted.
template <MapOperation operation, class Adaptor>
std::uint64_t run_each(Adaptor& map, std::span<const std::uint64_t> keys, MapShare& share) {
  std::vector<std::uint64_t> spent(keys.size());
  WorstCpu worst;
  std::uint64_t right = 0;
  std::uint64_t last = os::tsc_end();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % WorstCpu::operations_a_reading == 0) {
      worst.read();
      last = os::tsc_end();
    }
    right += operate<operation>(map, keys[i]);
    const std::uint64_t now = os::tsc_end();
    spent[i] = now - last;
    last = worst.look_at(spent[i]) ? os::tsc_end() : now;
  }
  share.worst_cpu_ns = worst.worst_ns();
  const std::uint64_t own = os::tsc_own_ticks();
  for (const std::uint64_t stretch : spent) {
    const std::uint64_t ticks = stretch > own ? stretch - own : 0;
    share.ticks.record(ticks);
    share.sum_ticks += ticks;
    if (ticks < share.min_ticks) share.min_ticks = ticks;
  }
  return right;
}

template <MapOperation operation, class Adaptor>
std::uint64_t run_whole(Adaptor& map, std::span<const std::uint64_t> keys) {
  std::uint64_t right = 0;
  for (const std::uint64_t key : keys)
    right += operate<operation>(map, key);
  return right;
}

/// The index of each key depends formally on the last value: it is multiplied by `nothing`, which
/// is 0, but unknown to the compiler.
template <class Adaptor>
std::uint64_t run_dependent(Adaptor& map, std::span<const std::uint64_t> keys) {
  std::uint64_t nothing = 0;
  asm volatile("" : "+r"(nothing));
  std::uint64_t right = 0;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t key = keys[i + (value & nothing)];
    value = map.get(key);
    right += value == map_word(key);
  }
  return right;
}

template <class Adaptor>
std::uint64_t run_batched(Adaptor& map, std::span<const std::uint64_t> keys) {
  std::uint64_t right = 0;
  for (; !keys.empty(); keys = keys.subspan(std::min(map_batch, keys.size())))
    right += map.get_many(keys.first(std::min(map_batch, keys.size())));
  return right;
}

/// A map with its loops compiled for it.
template <class Adaptor>
class MapLoops final : public MapSubject {
public:
  explicit MapLoops(std::unique_ptr<Adaptor> map) : map_(std::move(map)) {}

  void run(MapOperation operation, MapPass pass, std::span<const std::uint64_t> keys,
           MapShare& share) override {
    const storelog::Counters before = storelog::counters();
    std::uint64_t right = 0;
    share.edge.begin();
    share.start_ns = os::now_ns();
    switch (operation) {
    case MapOperation::insert: right = run_as<MapOperation::insert>(pass, keys, share); break;
    case MapOperation::get: right = run_as<MapOperation::get>(pass, keys, share); break;
    case MapOperation::remove: right = run_as<MapOperation::remove>(pass, keys, share); break;
    }
    share.end_ns = os::now_ns();
    share.edge.end();
    share.counted = storelog::counters() - before;
    if (const Error* failed = map_->failure())
      share.failure = *failed;
    else if (right != keys.size())
      share.failure = wrong_answer(names[static_cast<std::size_t>(operation)]);
  }

  std::uint64_t write_until(const std::atomic<bool>& ended) override {
    std::uint64_t written = 0;
    do {
      const std::uint64_t key = first_writer_key + written++;
      if (operate<MapOperation::insert>(*map_, key) + operate<MapOperation::remove>(*map_, key) !=
          2)
        return 0;
    } while (!ended.load(std::memory_order_relaxed));
    return written;
  }

  std::span<const std::byte> pool() const override { return map_->pool(); }

private:
  static constexpr const char* names[] = {"an insertion", "a look-up", "a removal"};

  template <MapOperation operation>
  std::uint64_t run_as(MapPass pass, std::span<const std::uint64_t> keys, MapShare& share) {
    if (pass == MapPass::each) return run_each<operation>(*map_, keys, share);
    if (pass == MapPass::dependent) return run_dependent(*map_, keys);
    if constexpr (requires { map_->get_many(keys); })
      if (pass == MapPass::batched) return run_batched(*map_, keys);
    return run_whole<operation>(*map_, keys);
  }

  std::unique_ptr<Adaptor> map_;
};

/// A map after PMDK in a pool of its own.
Result<std::unique_ptr<MapSubject>> pmdk_map(const MapPlan& plan);
/// nearfar's map in a pool of its own, or its counterpart in DRAM.
Result<std::unique_ptr<MapSubject>> our_map(const MapPlan& plan);

} // namespace nearfar::bench
