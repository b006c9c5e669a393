// Access of programs to their arrays: as plain memory, or with every access recorded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/programs.hpp"
#include "trace/writer.hpp"

namespace nearfar::bench {

/// Records nothing: a View is then as fast as a pointer.
struct NoRecorder {
  void access(std::uint64_t, unsigned, bool) {}
};

/// Passes accesses through caches, and the resulting memory traffic into a trace.
class Recorder {
public:
  Recorder(cache::Hierarchy caches, trace::TraceWriter& writer)
      : caches_(std::move(caches)), writer_(writer), thread_(writer.thread(0)) {
    caches_.record_traffic(&passed_);
  }

  void access(std::uint64_t address, unsigned size, bool write) {
    instructions_ += instructions_an_access;
    ++writer_.totals[write ? trace::Total::stores : trace::Total::loads];
    caches_.access(address, size, write ? cache::Access::store : cache::Access::load);
    if (!passed_.empty()) pass(write);
  }

  /// Counts of the whole run, as a trace has them.
  void finish();

  static constexpr unsigned array_shift = 32; ///< arrays are so many bits of address apart

private:
  void pass(bool write);

  cache::Hierarchy caches_;
  trace::TraceWriter& writer_;
  std::uint16_t thread_;
  std::uint64_t instructions_ = 0;
  std::vector<cache::Traffic> passed_;
};

/// An array of T; `base` is the address that is recorded.
template <class T, class R>
class View {
public:
  View(T* data, std::uint64_t base, R& recorder) : data_(data), base_(base), recorder_(&recorder) {}

  T get(std::size_t i) const {
    recorder_->access(base_ + i * sizeof(T), sizeof(T), false);
    return data_[i];
  }
  void set(std::size_t i, T value) const {
    recorder_->access(base_ + i * sizeof(T), sizeof(T), true);
    data_[i] = value;
  }

private:
  T* data_;
  std::uint64_t base_;
  R* recorder_;
};

} // namespace nearfar::bench
