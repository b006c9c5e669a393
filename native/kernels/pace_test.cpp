#include "kernels/pace.hpp"

#include <doctest/doctest.h>
#include <thread>

#include "kernels/paced_arrays.hpp"
#include "os/clock.hpp"

using namespace nearfar;
using kernels::Device;
using kernels::Pacer;

namespace {

constexpr std::size_t kib = 1024;

std::uint64_t since(std::uint64_t start_ns) { return os::now_ns() - start_ns; }

} // namespace

TEST_CASE("a block is done no sooner than its lines allow") {
  Device device({10, 20, 1e15, 1e15, 0});
  Pacer pacer(&device);
  const std::uint64_t start = os::now_ns();
  pacer.start();
  for (int i = 0; i < 100; ++i)
    pacer.charge(64 * kib, 64 * kib); // 1024 lines of each: 30.72 us
  CHECK(since(start) >= 100 * 30'720);
}

TEST_CASE("jitter keeps the mean of the delays and changes each") {
  Device device({10, 0, 1e15, 1e15, 0.5});
  Pacer pacer(&device);
  constexpr std::uint64_t blocks = 20'000, mean_ns = 10'240; // of 1024 lines
  std::uint64_t total = 0, shortest = UINT64_MAX, longest = 0;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t delay = pacer.due_ns(64 * kib, 0, 0);
    total += delay;
    shortest = std::min(shortest, delay);
    longest = std::max(longest, delay);
  }
  CHECK(total > blocks * mean_ns * 97 / 100);
  CHECK(total < blocks * mean_ns * 103 / 100);
  CHECK(shortest >= mean_ns / 2 - 1); // half of the delay does not vary
  CHECK(shortest < mean_ns * 51 / 100);
  CHECK(longest > 3 * mean_ns);
}

TEST_CASE("all threads of a device share its tokens") {
  Device device({0, 0, 1e9, 1e9, 0});
  const std::uint64_t start = os::now_ns();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        Pacer pacer(&device);
        pacer.start();
        for (int i = 0; i < 50; ++i)
          pacer.charge(32 * kib, 32 * kib); // 65.536 us of the device
      });
  }
  CHECK(since(start) + Device::burst_ns >= 3 * 50 * 65'536);
}

TEST_CASE("tokens are granted ahead up to the burst, and are not saved up beyond it") {
  Device device({0, 0, 1e9, 1e9, 0});
  CHECK(device.take(5'000, 1'000'000) == 1'000'000);
  CHECK(device.take(25'000, 1'000'000) == 1'030'000 - Device::burst_ns);
  CHECK(device.take(1'000, 9'000'000) == 9'000'000); // idle time is worth one burst, no more
  CHECK(device.take(100'000, 9'000'000) == 9'101'000 - Device::burst_ns);
}

TEST_CASE("arrays on one tier share a device, those on another do not, others have none") {
  tier::Spec a = *tier::parse("paced:dram@a");
  const tier::Spec b = *tier::parse("paced:dram@b");
  kernels::Devices devices;
  Device* first = devices.of(a);
  CHECK(first != nullptr);
  CHECK(devices.of(b) != first);
  a.populate = true;
  CHECK(devices.of(a) == first);
  CHECK(devices.of(*tier::parse("dram")) == nullptr);
}

TEST_CASE("every array kernel does the same paced, and takes at least what it is charged with") {
  constexpr std::size_t elements = 3 * kernels::paced_elements + 5;
  for (const kernels::ArrayKernel& kernel : kernels::array_kernels()) {
    CAPTURE(kernel.name);
    std::array<std::vector<double>, 3> plain;
    for (std::size_t i = 0; i < 3; ++i)
      plain[i].assign(elements, 1.5 + static_cast<double>(i));
    auto paced = plain;
    const auto slice = [&](auto& x) {
      return kernels::Slice{x[0].data(), x[1].data(), x[2].data(), elements, 0.5};
    };
    Device device({100, 100, 1e15, 1e15, 0});
    kernels::ArrayPacers pacers = {Pacer(&device), Pacer(&device), Pacer(&device)};
    const std::uint64_t start = os::now_ns();
    const std::uint64_t sum = kernels::run_paced(kernel, slice(paced), pacers);
    CHECK(since(start) >= elements * sizeof(double) / 64 * 100);
    CHECK(sum == kernel.run(slice(plain)));
    CHECK(paced == plain);
    CHECK(kernel.loaded_bytes == 8 * std::string(kernel.reads).size());
    CHECK(kernel.stored_bytes == (kernel.writes == '-' ? 0 : 8));
  }
}
