#include "sim/accuracy_sampler.hpp"

#include <algorithm>
#include <cmath>

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
  busy_ += request.gap;
  ++recorded_;
  if (issued_ + 1 < sample_end_) return;
  replay(now);
  begin_stratum(stratum_end_);
}

void AccuracySampler::replay(Time now) {
  Result<ReplayTimes> fast = replay_fast(events_, setup_);
  Result<ReplayTimes> exact = replay_exact(events_, setup_);
  if (fast && exact) {
    const bool is_first = stratum_begin_ == 0;
    Sample sample = sample_of(*fast, *exact, is_first);
    sample.stratum_begin = stratum_begin_;
    sample.requests = recorded_;
    sample.busy = static_cast<double>(busy_);
    if (!is_first) sample.run = static_cast<double>(now - began_); // a run begins with a cold start
    samples_.push_back(std::move(sample));
  } else {
    replayed_ = fast ? exact.error() : fast.error();
  }
  events_.clear();
  recorded_ = 0;
  busy_ = 0;
}

AccuracySampler::Sample AccuracySampler::sample_of(const ReplayTimes& fast,
                                                   const ReplayTimes& exact, bool is_first) {
  const auto between = [](Time end, Time begin) { return static_cast<double>(end - begin); };
  Sample sample{0, 0, 0, between(fast.end, 0), between(exact.end, 0), 0, {}};
  if (is_first && !fast.parts.empty())
    sample.parts.push_back({between(fast.parts[0], 0), between(exact.parts[0], 0)});
  for (std::size_t i = 1; i < fast.parts.size(); ++i)
    sample.parts.push_back(
        {between(fast.parts[i], fast.parts[i - 1]), between(exact.parts[i], exact.parts[i - 1])});
  if (sample.parts.empty()) sample.parts.push_back({sample.run, sample.exact});
  return sample;
}

/// Weights the parts of each sample by the requests that they represent. `end`: of the last
/// stratum.
void AccuracySampler::weigh(std::uint64_t end) {
  for (std::size_t i = samples_.size(); i-- > 0; end = samples_[i].stratum_begin) {
    Sample& sample = samples_[i];
    sample.weight = static_cast<double>(end - sample.stratum_begin);
    for (Part& part : sample.parts) {
      part.fast *= sample.weight / static_cast<double>(sample.parts.size());
      part.exact *= sample.weight / static_cast<double>(sample.parts.size());
    }
  }
}

/// Sets SampledTimes::difference and error. Parts of a sample may resemble each other more than
/// samples do, and there may be few samples: the larger of both errors is taken.
void AccuracySampler::estimate(SampledTimes& times) const {
  double fast = 0;
  double exact = 0;
  for (const Sample& sample : samples_)
    for (const Part& part : sample.parts) {
      fast += part.fast;
      exact += part.exact;
    }
  if (exact <= 0) return;
  const double ratio = fast / exact;
  double of_parts = 0; // sums of squares
  double of_samples = 0;
  for (const Sample& sample : samples_) {
    double sum = 0;
    for (const Part& part : sample.parts) {
      const double residual = part.fast - ratio * part.exact;
      of_parts += residual * residual;
      sum += residual;
    }
    of_samples += sum * sum;
  }
  times.difference = ratio - 1;
  times.error = std::sqrt(std::max(of_parts, of_samples)) / exact;
}

Result<SampledTimes> AccuracySampler::finish(Time now) {
  if (recorded_ >= min_requests || (samples_.empty() && recorded_ > 0)) replay(now);
  if (!replayed_) return replayed_.error();
  SampledTimes times;
  if (samples_.empty()) return times;
  weigh(issued_);
  double run = 0;
  double exact = 0;
  for (const Sample& sample : samples_) {
    const double scale = sample.weight / static_cast<double>(sample.requests);
    run += scale * sample.run;
    exact += scale * sample.exact;
    times.waited += scale * (sample.run - sample.busy);
    times.requests += sample.requests;
  }
  if (exact > 0) times.run_difference = run / exact - 1;
  if (times.requests == issued_)
    times.difference = times.run_difference; // the whole run
  else
    estimate(times);
  return times;
}

} // namespace nearfar::sim
