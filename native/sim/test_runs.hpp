// Runs of the engines in the tests of this layer.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/simulate.hpp"
#include "sim/test_devices.hpp"

namespace nearfar::sim {

inline Setup all_far(const Device& device, Engine engine, PagePolicy page = PagePolicy::open) {
  Setup setup;
  setup.near = setup.far = device;
  setup.near_controller.page = setup.far_controller.page = page;
  setup.engine = engine;
  setup.accept_inexact = true;
  return setup;
}

inline Outcome run(const Setup& setup, const Synthetic& what) {
  SyntheticSource source(what);
  Result<Outcome> outcome = simulate(source, setup);
  REQUIRE_MESSAGE(outcome, outcome.error().what);
  return std::move(*outcome);
}

constexpr std::uint64_t mib = 1 << 20;

/// Requests from a list.
class Listed : public RequestSource {
public:
  explicit Listed(std::vector<Request> requests, bool physical = false)
      : requests_(std::move(requests)), physical_(physical) {}
  Result<std::size_t> fill(std::span<Request> out) override {
    const std::size_t count = std::min(out.size(), requests_.size() - next_);
    std::copy_n(requests_.begin() + static_cast<std::ptrdiff_t>(next_), count, out.begin());
    next_ += count;
    return count;
  }
  bool physical() const override { return physical_; }

private:
  std::vector<Request> requests_;
  bool physical_;
  std::size_t next_ = 0;
};

inline Outcome run(const Setup& setup, std::vector<Request> requests, bool physical = false) {
  Listed source(std::move(requests), physical);
  Result<Outcome> outcome = simulate(source, setup);
  REQUIRE_MESSAGE(outcome, outcome.error().what);
  return std::move(*outcome);
}

} // namespace nearfar::sim
