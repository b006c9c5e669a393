#include "probe/bandwidth.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "kernels/paced_arrays.hpp"
#include "os/cpu.hpp"

namespace nearfar::probe {

namespace {

// STREAM's first contents and a scalar that keeps a and b within a factor of 3 of them over many
// rounds of copy, scale, add, triad (McCalpin's sqrt(2) - 1).
constexpr std::array<double, 3> initial = {1.0, 2.0, 0.0};
constexpr double scalar = 0.41421356237309503;
constexpr std::size_t doubles_per_line = os::cache_line_bytes / sizeof(double);

} // namespace

Result<ArrayBench> ArrayBench::create(const std::array<tier::Spec, 3>& specs, std::size_t elements,
                                      std::span<const int> cpus) {
  std::array<tier::Mapping, 3> arrays;
  std::array<double*, 3> data{};
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    Result<tier::Mapping> mapping = tier::map_to_pace(specs[i], elements * sizeof(double));
    if (!mapping) return mapping.error();
    arrays[i] = std::move(*mapping);
    data[i] = reinterpret_cast<double*>(arrays[i].data());
  }
  ArrayBench bench(data, elements);
  bench.arrays_ = std::move(arrays);
  for (std::size_t i = 0; i < specs.size(); ++i)
    bench.device_of_[i] = bench.devices_.of(specs[i]);
  if (Status touched = bench.reset(cpus); !touched) return touched.error();
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (Status pages = tier::verify_pages(specs[i], bench.arrays_[i]); !pages) return pages.error();
  return bench;
}

Result<ArrayBench> ArrayBench::over(const std::array<double*, 3>& arrays, std::size_t elements,
                                    std::span<const int> cpus) {
  ArrayBench bench(arrays, elements);
  if (Status touched = bench.reset(cpus); !touched) return touched.error();
  return bench;
}

kernels::Slice ArrayBench::slice(std::size_t index, std::size_t parts) const {
  const std::size_t lines = elements_ / doubles_per_line;
  const std::size_t first = lines * index / parts * doubles_per_line;
  const std::size_t end =
      index + 1 == parts ? elements_ : lines * (index + 1) / parts * doubles_per_line;
  const auto array = [&](std::size_t i) { return data_[i] + first; };
  return {array(0), array(1), array(2), end - first, scalar};
}

Status ArrayBench::reset(std::span<const int> cpus) {
  Result<kernels::TeamRun> run = kernels::run_team(cpus, [&](std::size_t member) {
    const kernels::Slice s = slice(member, cpus.size());
    std::fill_n(s.a, s.elements, initial[0]);
    std::fill_n(s.b, s.elements, initial[1]);
    std::fill_n(s.c, s.elements, initial[2]);
  });
  if (!run) return run.error();
  expected_ = initial;
  return Done{};
}

Result<ArrayRepeat> ArrayBench::repeat(const char* name, std::span<const int> cpus) {
  const kernels::ArrayKernel* kernel = kernels::find_array_kernel(name);
  if (kernel == nullptr) return Error::make(Errc::bad_input, "unknown kernel '%s'", name);
  std::atomic<std::uint64_t> checksum{0};
  Result<kernels::TeamRun> run = kernels::run_team(cpus, [&](std::size_t member) {
    kernels::ArrayPacers pacers = {kernels::Pacer(device_of_[0]), kernels::Pacer(device_of_[1]),
                                   kernels::Pacer(device_of_[2])};
    checksum += kernels::run_paced(*kernel, slice(member, cpus.size()), pacers);
  });
  if (!run) return run.error();
  kernel->follow(expected_[0], expected_[1], expected_[2], scalar);
  const bool only_reads = kernel->stored_bytes == 0;
  if (only_reads && checksum != std::bit_cast<std::uint64_t>(expected_[0]) * elements_)
    return Error::make(Errc::failed_check, "the %s kernel did not read what the array holds", name)
        .try_next("report this: the timed loop is broken on this machine");
  ArrayRepeat repeat;
  repeat.seconds = run->seconds();
  repeat.counted_bytes = elements_ * (kernel->loaded_bytes + kernel->stored_bytes);
  repeat.members = std::move(run->members);
  return repeat;
}

double ArrayBench::worst_error() const {
  double worst = 0;
  for (std::size_t i = 0; i < data_.size(); ++i) {
    const double* x = data_[i];
    const double scale = std::max(std::abs(expected_[i]), 1e-300);
    for (std::size_t k = 0; k < elements_; ++k)
      worst = std::max(worst, std::abs(x[k] - expected_[i]) / scale);
  }
  return worst;
}

} // namespace nearfar::probe
