// Input of the engines: cache misses of a trace, or a synthetic stream.
//
// Thread safety  one thread uses a source.
#pragma once

#include <cstddef>
#include <span>

#include "base/random.hpp"
#include "sim/device.hpp"

namespace nearfar::sim {

constexpr std::uint32_t no_object = ~std::uint32_t{0};
constexpr std::uint32_t max_depends = 1023;

struct Request {
  std::uint64_t address = 0; ///< in bytes: virtual, or physical if RequestSource::physical()
  Time gap = 0;              ///< CPU time since the previous request
  std::uint32_t object = no_object;
  /// Distance, in requests, to the read that produced the address (pointer chase); 0: none within
  /// max_depends.
  std::uint32_t depends = 0;
  bool write = false;
  bool prefetch = false; ///< no access waits for its data
};

class RequestSource {
public:
  virtual ~RequestSource() = default;
  /// Fills `out` from the front. Returns the number of requests, 0 at the end. Errors: those of
  /// the trace.
  virtual Result<std::size_t> fill(std::span<Request> out) = 0;
  /// CPU time after the last request. Valid at the end.
  virtual Time tail() const { return 0; }
  /// Whether addresses are physical: the frame number is the page number. Otherwise pages get
  /// frames in the order of their first touch.
  virtual bool physical() const { return false; }
};

enum class Pattern : unsigned char { sequential, random, chase };

/// Limits the wear counters to 1 GiB of host memory.
constexpr std::uint64_t max_region_bytes = std::uint64_t{1} << 36;

/// A reproducible stream: sequential, random, or random and dependent (pointer chase). Page numbers
/// are frame numbers.
struct Synthetic {
  Pattern pattern = Pattern::sequential;
  std::uint64_t count = 0;
  std::uint64_t region_bytes = 0; ///< at least one line, at most `max_region_bytes`
  double write_share = 0;
  Time gap = 0;
  std::uint64_t seed = 1;
};

class SyntheticSource : public RequestSource {
public:
  explicit SyntheticSource(const Synthetic& what)
      : what_(what), random_(what.seed), lines_(what.region_bytes / line_bytes),
        writes_below_(static_cast<std::uint64_t>(what.write_share * 65536)) {}

  Result<std::size_t> fill(std::span<Request> out) override {
    std::size_t made = 0;
    for (; made < out.size() && made_ < what_.count; ++made, ++made_) {
      const std::uint64_t word = random_.next();
      const std::uint64_t line =
          what_.pattern == Pattern::sequential ? next_line() : scaled(word, lines_);
      Request& request = out[made];
      request.address = line * line_bytes;
      request.gap = what_.gap;
      request.object = no_object;
      request.write = (word & 65535) < writes_below_;
      request.depends = what_.pattern == Pattern::chase && made_ > 0;
    }
    return made;
  }
  bool physical() const override { return true; }

private:
  std::uint64_t next_line() {
    if (line_ == lines_) line_ = 0;
    return line_++;
  }

  Synthetic what_;
  Random random_;
  std::uint64_t lines_;
  std::uint64_t writes_below_;
  std::uint64_t made_ = 0;
  std::uint64_t line_ = 0; ///< next line of a sequential stream
};

} // namespace nearfar::sim
