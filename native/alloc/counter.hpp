// Counters. A Counter has one writer at a time, and concurrent readers.
#pragma once

#include <atomic>
#include <cstdint>

namespace nearfar::alloc {

class Counter {
public:
  void add(std::uint64_t by) {
    value_.store(value_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  void reset() { value_.store(0, std::memory_order_relaxed); }

private:
  std::atomic<std::uint64_t> value_{0};
};

/// A counter with concurrent writers.
class SharedCounter {
public:
  void add(std::uint64_t by) { value_.fetch_add(by, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  void reset() { value_.store(0, std::memory_order_relaxed); }

private:
  std::atomic<std::uint64_t> value_{0};
};

} // namespace nearfar::alloc
