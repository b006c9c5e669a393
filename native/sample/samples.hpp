// Samples of a run: the instructions of its threads, and the data that they waited for.
//
// Weight         a clock sample stands for `period_ns` of user CPU time, a fault sample for
//                `period` page faults, a memory sample for `period` accesses of its latency.
// Long runs      from max_samples on, whole intervals of time are left out at even distances, so
//                that samples that are close in time stay so; the others have a larger weight.
// Thread safety  none.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "trace/format.hpp"

namespace nearfar::sample {

enum class SampleKind : std::uint8_t { clock, fault, memory };

/// SAMPLE_FIELDS in python/nearfar/place/sample_records.py has the same fields.
struct Sample {
  std::uint64_t time_ns = 0;
  std::uint64_t address = 0; ///< of the data; 0: unknown, or no access
  std::uint32_t code = 0;    ///< index of the CodeLocation
  std::uint32_t data = 0;    ///< index of the DataRegion; 0: unknown
  std::int32_t process = 0;
  std::int32_t thread = 0;
  std::uint32_t period = 0; ///< ns of CPU time, page faults or accesses, by kind
  SampleKind kind = SampleKind::clock;
  std::uint8_t level = 0;           ///< perf::MemoryLevel; memory samples only
  std::uint16_t latency_cycles = 0; ///< memory samples only
};
static_assert(sizeof(Sample) == 40);

/// An instruction at which samples were taken.
struct CodeLocation {
  std::uint32_t file = 0;   ///< number of the file; 0: code that is in no file
  std::uint64_t offset = 0; ///< in the file as addr2line takes it; else an address
  std::int32_t access = 0;  ///< bytes from here to the instruction that waited
  std::uint8_t bytes = 0;   ///< that it accesses; 0: no access
  bool is_load = false;
  bool is_store = false;
  bool is_string = false;
  bool follows_pointer = false; ///< its address was loaded shortly before
  bool is_readable = false;     ///< the code is known
};

/// A region of data: of an allocation site, a mapping, the globals of a file, or a stack.
struct DataRegion {
  trace::SiteKind kind = trace::SiteKind::unknown;
  /// Call chain of a heap site, or of a mapping that the allocation log has, innermost first; the
  /// file of statics or of a mapped file, with offset 0.
  struct Frame {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    friend bool operator==(const Frame&, const Frame&) = default;
  };
  std::vector<Frame> frames;
  /// Of one mapping with a call chain, and of statics; else 0, and address ranges have no meaning
  /// for the program.
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint32_t name = 0;        ///< of anonymous memory without a call chain
  std::uint64_t allocations = 0; ///< the rest: of call chains only, with begin 0
  std::uint64_t allocated_bytes = 0;
  std::uint64_t peak_bytes = 0;
  /// Live bytes over time.
  struct Held {
    std::uint64_t time_ns = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<Held> held;
};

/// A program of the run.
struct SampledProgram {
  pid_t process = 0;
  std::string name;          ///< as the kernel has it, at most 15 characters
  std::uint64_t samples = 0; ///< of the clock
};

class SampleStore {
public:
  static constexpr std::size_t max_samples = 400'000; ///< 20 MiB

  void add(const Sample& sample);
  const std::vector<Sample>& all() const { return samples_; }
  /// One stretch of time in this many is kept.
  unsigned keeps_one_in() const { return 1u << halvings_; }

private:
  bool keeps(std::uint64_t time_ns) const;

  std::vector<Sample> samples_;
  unsigned halvings_ = 0;
};

} // namespace nearfar::sample
