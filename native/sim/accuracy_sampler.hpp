// Measures by how much the fast engine differs from the exact one: records samples of a run, and
// simulates each in both engines.
//
// Samples        The first `first_sample` requests, and sample_requests at a random place of each
//                stratum of the rest. Strata double in length up to 2^21 requests, so that samples
//                are less than 1 % of a long run.
// Cold start     A sample begins with idle memories and closed rows in both engines. Its first part
//                is not counted, unless the run begins with it. A stream that has another time in
//                the run than from such a start shows in run_difference.
// Estimate       The ratio of the times of all parts of samples, each weighted by the requests that
//                it represents, and its standard error: some streams change between patterns in
//                which the engines differ more or less. A run that is one sample has no error.
// Thread safety  one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "sim/simulate.hpp"

namespace nearfar::sim {

/// An action of a run with a placed request; actions are in order.
struct SampledEvent {
  enum class Type : unsigned char { stall, move, issue };
  Type type = Type::issue;
  Request request;
  PlacedAccess placed;
  Time stall = 0;
};

/// Times of a replay, from its begin.
struct ReplayTimes {
  Time end = 0;
  std::vector<Time> parts; ///< the end of each AccuracySampler::part_requests requests
};

class AccuracySampler {
public:
  static constexpr std::uint64_t first_sample = 16384;
  static constexpr std::uint64_t sample_requests = 4096;
  static constexpr std::uint64_t part_requests = 1024;

  explicit AccuracySampler(const Setup& setup);

  void stall(Time time) {
    if (issued_ < sample_begin_) return;
    events_.push_back({SampledEvent::Type::stall, {}, {}, time});
    busy_ += time;
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
  /// Times in ps of a part of a sample, in both engines.
  struct Part {
    double fast;
    double exact;
  };
  /// A sample that was simulated.
  struct Sample {
    std::uint64_t stratum_begin; ///< number of the first request of its stratum
    std::uint64_t requests;
    double weight; ///< requests of its stratum
    double run;    ///< times in ps: in the run, and of the exact replay
    double exact;
    double busy;             ///< CPU and kernel time, in ps
    std::vector<Part> parts; ///< that are counted; at least one
  };
  void record(const Request& request, const PlacedAccess& placed, Time now);
  void begin_stratum(std::uint64_t begin);
  void replay(Time now);
  static Sample sample_of(const ReplayTimes& fast, const ReplayTimes& exact, bool is_first);
  void weigh(std::uint64_t end);
  void estimate(SampledTimes& times) const;

  Setup setup_;
  Random random_{1};
  std::uint64_t issued_ = 0; ///< number of requests so far
  std::uint64_t stratum_begin_ = 0;
  std::uint64_t stratum_end_ = first_sample;
  std::uint64_t sample_begin_ = 0; ///< number of the first request of the next sample
  std::uint64_t sample_end_ = first_sample;
  std::uint64_t recorded_ = 0; ///< number of requests in events_
  Time began_ = 0;             ///< time of the run at the begin of the sample
  Time busy_ = 0;              ///< CPU and kernel time of the events
  std::vector<SampledEvent> events_;
  std::vector<Sample> samples_;
  Status replayed_ = Done{};
};

} // namespace nearfar::sim
