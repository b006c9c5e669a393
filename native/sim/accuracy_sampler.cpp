#include "sim/accuracy_sampler.hpp"

#include <algorithm>

#include "sim/runs.hpp"

namespace nearfar::sim {

namespace {

constexpr std::uint64_t max_stratum = std::uint64_t{1} << 21;
/// Of a sample that the end of the run cuts. A shorter one is not used: its cold start counts too
/// much.
constexpr std::uint64_t min_requests = AccuracySampler::sample_requests / 4;

} // namespace

AccuracySampler::AccuracySampler(const Setup& setup) : setup_(setup) {
  setup_.commands[0] = setup_.commands[1] = nullptr;
}

void AccuracySampler::begin_stratum(std::uint64_t begin) {
  const std::uint64_t requests = std::min(begin, max_stratum);
  stratum_begin_ = begin;
  stratum_end_ = begin + requests;
  sample_begin_ = begin + random_.below(requests - sample_requests + 1);
  sample_end_ = sample_begin_ + sample_requests;
}

void AccuracySampler::record(const Request& request, const PlacedAccess& placed, Time now) {
  if (recorded_ == 0) began_ = now;
  events_.push_back({SampledEvent::Type::issue, request, placed, 0});
  ++recorded_;
  if (issued_ + 1 < sample_end_) return;
  replay(now);
  begin_stratum(stratum_end_);
}

void AccuracySampler::replay(Time now) {
  Result<Time> fast = replay_fast(events_, setup_);
  Result<Time> exact = replay_exact(events_, setup_);
  if (fast && exact) {
    const Time run = stratum_begin_ == 0 ? *fast : now - began_; // a run begins with a cold start
    samples_.push_back({stratum_begin_, static_cast<double>(recorded_), static_cast<double>(run),
                        static_cast<double>(*fast), static_cast<double>(*exact)});
  } else {
    replayed_ = fast ? exact.error() : fast.error();
  }
  events_.clear();
  recorded_ = 0;
}

Result<SampledTimes> AccuracySampler::finish(Time now) {
  if (recorded_ >= min_requests || (samples_.empty() && recorded_ > 0)) replay(now);
  if (!replayed_) return replayed_.error();
  SampledTimes times;
  double run = 0;
  double fast = 0;
  double exact = 0;
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const Sample& sample = samples_[i];
    const std::uint64_t end = i + 1 < samples_.size() ? samples_[i + 1].stratum_begin : issued_;
    const double weight = static_cast<double>(end - sample.stratum_begin) / sample.requests;
    run += weight * sample.run;
    fast += weight * sample.fast;
    exact += weight * sample.exact;
    times.requests += static_cast<std::uint64_t>(sample.requests);
  }
  if (exact <= 0) return times;
  times.difference = fast / exact - 1;
  times.run_difference = run / exact - 1;
  return times;
}

} // namespace nearfar::sim
