#include "sample/bursts.hpp"

#include "base/random.hpp"

namespace nearfar::sample {

bool Bursts::advance(std::uint64_t now_ns) {
  (enabled_ ? enabled_ns_ : disabled_ns_) += now_ns - last_ns_;
  last_ns_ = now_ns;
  if (left_ != 0) {
    --left_;
    return false;
  }
  enabled_ = !enabled_;
  random_ = next_mmix(random_);
  constexpr unsigned spread = 3; // 4 to 6 readings: 5 in the mean
  left_ = enabled_ ? 0 : one_in - 3 + static_cast<unsigned>((random_ >> 33) % spread);
  return true;
}

double Bursts::enabled_share() const {
  const auto all = static_cast<double>(enabled_ns_ + disabled_ns_);
  return enabled_ns_ == 0 ? 1.0 : static_cast<double>(enabled_ns_) / all;
}

} // namespace nearfar::sample
