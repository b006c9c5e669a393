#include "cache/layer_condition.hpp"

#include <algorithm>

#include "base/random.hpp"

namespace nearfar::cache {

namespace {

constexpr std::uint64_t page_bytes = 4096;

/// The physical address of an address: 52 bits of a hash as the frame.
std::uint64_t scattered(std::uint64_t address) {
  return Random(address / page_bytes).next() / page_bytes * page_bytes + address % page_bytes;
}

/// Sweeps rows through a cache, a line at a time: within a line all elements hit.
class Sweep {
public:
  Sweep(Cache cache, std::uint64_t row_bytes, Pages pages)
      : cache_(std::move(cache)), line_bytes_(cache_.geometry().line_bytes), row_bytes_(row_bytes),
        pages_(pages) {}

  void row(std::uint64_t number) {
    const std::uint64_t begin = number * row_bytes_;
    for (std::uint64_t at = begin; at < begin + row_bytes_; at += line_bytes_) {
      access(at, false); // the row above
      access(at + row_bytes_, false);
      access(at + 2 * row_bytes_, false);
      access(out_begin + at, true);
    }
  }

  std::uint64_t traffic_lines() const { return traffic_lines_; }

private:
  static constexpr std::uint64_t out_begin = std::uint64_t{1} << 46; // far above any row of `in`

  void access(std::uint64_t address, bool write) {
    const std::uint64_t line =
        (pages_ == Pages::scattered ? scattered(address) : address) / line_bytes_;
    if (cache_.touch(line, write)) return;
    const Victim victim = cache_.fill(line, write);
    traffic_lines_ += 1 + (victim.present && victim.dirty);
  }

  Cache cache_;
  std::uint64_t line_bytes_;
  std::uint64_t row_bytes_;
  Pages pages_;
  std::uint64_t traffic_lines_ = 0;
};

} // namespace

Result<double> layer_condition_factor(std::uint64_t columns, unsigned element_bytes,
                                      const Geometry& geometry, Pages pages, std::uint64_t seed) {
  const std::uint64_t row_bytes = columns * element_bytes;
  if (columns < 3 || element_bytes == 0 || columns > (std::uint64_t{1} << 32))
    return Error::make(Errc::bad_input, "a stencil over rows of %llu elements of %u bytes",
                       static_cast<unsigned long long>(columns), element_bytes)
        .try_next("give at least three columns of at least one byte");
  Result<Cache> cache = Cache::create(geometry, seed);
  if (!cache) return cache.error();
  // At least two lines an out-and-in line pair come in, so this fills the cache four times over.
  const std::uint64_t warm = 8 + 2 * geometry.size_bytes / row_bytes;
  const std::uint64_t counted = std::max<std::uint64_t>(16, (std::uint64_t{1} << 24) / row_bytes);
  Sweep sweep(std::move(*cache), row_bytes, pages);
  for (std::uint64_t row = 0; row < warm; ++row)
    sweep.row(row);
  const std::uint64_t before = sweep.traffic_lines();
  for (std::uint64_t row = warm; row < warm + counted; ++row)
    sweep.row(row);
  const double moved = static_cast<double>(sweep.traffic_lines() - before) *
                       static_cast<double>(geometry.line_bytes);
  return moved / (3.0 * static_cast<double>(counted * row_bytes));
}

} // namespace nearfar::cache
