#include <doctest/doctest.h>

#include "sample/samples.hpp"

using namespace nearfar::sample;

TEST_CASE("a long run keeps whole stretches of time, and says how many") {
  SampleStore store;
  CHECK(store.keeps_one_in() == 1);
  constexpr std::uint64_t count = 3 * SampleStore::max_samples;
  for (std::uint64_t i = 0; i < count; ++i) {
    Sample sample;
    sample.time_ns = i * 500'000;
    store.add(sample);
  }
  CHECK(store.keeps_one_in() == 4);
  CHECK(store.all().size() < SampleStore::max_samples);
  const double kept = static_cast<double>(store.all().size()) * store.keeps_one_in();
  CHECK(kept == doctest::Approx(static_cast<double>(count)).epsilon(0.01));
  std::size_t neighbors = 0;
  for (std::size_t i = 1; i < store.all().size(); ++i)
    neighbors += store.all()[i].time_ns - store.all()[i - 1].time_ns == 500'000;
  CHECK(neighbors > store.all().size() * 9 / 10);
}
