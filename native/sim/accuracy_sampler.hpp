// Measures by how much the fast engine differs from the exact one: records samples of a run, and
// simulates each in both engines.
//
// Samples        The first `first_sample` requests, and sample_requests at a random place of each stratum of
//                the rest. Strata double in length up to 2^21 requests, so that samples are less
//                than 1 % of a long run.
// Cold start     A sample begins with idle memories and closed rows in both engines. A stream that has
//                another time in the run than from such a start shows in run_difference.
// Estimate       Each sample counts by the number of requests of its stratum.
// Thread safety  one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "sim/simulate.hpp"

namespace nearfar::sim {

/// What a run does with a placed request, in order.
struct SampledEvent {
  enum class Type : unsigned char { stall, move, issue };
  Type type = Type::issue;
  Request request;
  PlacedAccess placed;
  Time stall = 0;
};

class AccuracySampler {
public:
  static constexpr std::uint64_t first_sample = 16384;
  static constexpr std::uint64_t sample_requests = 4096;

  explicit AccuracySampler(const Setup& setup);

  void stall(Time time) {
    if (issued_ >= sample_begin_) events_.push_back({SampledEvent::Type::stall, {}, {}, time});
  }
  void move(const PlacedAccess& placed) {
    if (issued_ >= sample_begin_) events_.push_back({SampledEvent::Type::move, {}, placed, 0});
  }
  /// `now`: time of the run.
  void issue(const Request& request, const PlacedAccess& placed, Time now) {
    if (issued_ >= sample_begin_) [[unlikely]]
      record(request, placed, now);
    ++issued_;
  }

  /// Completes the last sample. Errors: those of a replay.
  Result<SampledTimes> finish(Time now);

private:
  /// A sample that was simulated.
  struct Sample {
    std::uint64_t stratum_begin; ///< number of the first request of its stratum
    double requests;
    double run; ///< times in ps: in the run, and of both replays
    double fast;
    double exact;
  };

  void record(const Request& request, const PlacedAccess& placed, Time now);
  void begin_stratum(std::uint64_t begin);
  void replay(Time now);

  Setup setup_;
  Random random_{1};
  std::uint64_t issued_ = 0; ///< number of requests so far
  std::uint64_t stratum_begin_ = 0;
  std::uint64_t stratum_end_ = first_sample;
  std::uint64_t sample_begin_ = 0; ///< number of the first request of the next sample
  std::uint64_t sample_end_ = first_sample;
  std::uint64_t recorded_ = 0; ///< number of requests in events_
  Time began_ = 0;             ///< time of the run at the begin of the sample
  std::vector<SampledEvent> events_;
  std::vector<Sample> samples_;
  Status replayed_ = Done{};
};

} // namespace nearfar::sim
