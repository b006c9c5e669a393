#include "sample/samples.hpp"

#include <algorithm>

namespace nearfar::sample {

namespace {
constexpr unsigned stretch_bits = 28; // 0.27 s
}

bool SampleStore::keeps(std::uint64_t time_ns) const {
  return (time_ns >> stretch_bits) % keeps_one_in() == 0;
}

void SampleStore::add(const Sample& sample) {
  if (!keeps(sample.time_ns)) return;
  samples_.push_back(sample);
  while (samples_.size() >= max_samples) {
    ++halvings_;
    std::erase_if(samples_, [&](const Sample& one) { return !keeps(one.time_ns); });
  }
}

} // namespace nearfar::sample
