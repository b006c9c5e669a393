#include "sample/bursts.hpp"

#include "base/random.hpp"

namespace nearfar::sample {

bool Bursts::advance(std::uint64_t now_ns) {
  (enabled_ ? enabled_ns_ : disabled_ns_) += now_ns - last_ns_;
  last_ns_ = now_ns;
  const bool before = enabled_;
  random_ = next_mmix(random_);
  const double drawn = static_cast<double>(random_ >> 32) * 0x1p-32;
  credit_ += share_;
  enabled_ = drawn < credit_;
  if (enabled_) credit_ -= 1.0;
  return enabled_ != before;
}

double Bursts::enabled_share() const {
  const auto all = static_cast<double>(enabled_ns_ + disabled_ns_);
  return enabled_ns_ == 0 ? 1.0 : static_cast<double>(enabled_ns_) / all;
}

} // namespace nearfar::sample
