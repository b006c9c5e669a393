#include "bench/pool_arrays.hpp"

#include "bench/pool_place.hpp"

namespace nearfar::bench {

namespace {

constexpr persist::Layout layout{"nearfar bench stream", 1};
constexpr std::uint64_t array_type = 3;
constexpr std::size_t arrays = 3;
/// An object of many chunks of 256 KiB begins in one of its own.
constexpr std::size_t overhead_bytes = 16 << 20;

} // namespace

Result<PoolArrays> PoolArrays::create(const tier::Spec& tier, std::size_t elements,
                                      std::span<const int> cpus) {
  const std::size_t bytes = elements * sizeof(double);
  Result<persist::Pool> made =
      make_pool(tier, layout, arrays * bytes + overhead_bytes, arrays * sizeof(std::uint64_t));
  if (!made) return made.error();
  auto pool = std::make_unique<persist::Pool>(std::move(*made));
  auto* links = reinterpret_cast<std::uint64_t*>(pool->root());
  std::array<double*, arrays> data{};
  for (std::size_t i = 0; i < arrays; ++i) {
    if (Status taken = pool->allocate(&links[i], bytes, array_type, false); !taken)
      return taken.error();
    data[i] = reinterpret_cast<double*>(pool->at(links[i]));
  }
  Result<probe::ArrayBench> bench = probe::ArrayBench::over(data, elements, cpus);
  if (!bench) return bench.error();
  return PoolArrays{std::move(pool), std::move(*bench)};
}

} // namespace nearfar::bench
