// What is put to the test: a persistent structure that can be filled, crashed, reopened and asked.
//
// Thread safety  one thread. None of these is called while another runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace nearfar::crash {

/// One change. A queue pushes `value` on insert and ignores `key` on remove; `move` takes `key`
/// from the first of two containers to the second, or back if it is there.
struct Operation {
  enum class What : std::uint8_t { insert, remove, move };
  What what = What::insert;
  std::uint64_t key = 0;
  std::uint64_t value = 0;
};

/// Pairs that a structure holds: by key, or, of a queue, first in first.
using Contents = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

class Subject {
public:
  virtual ~Subject() = default;

  /// Makes an empty structure in a zeroed pool. It counts as durable before the trace begins.
  virtual Status create(std::byte* pool, std::size_t bytes) = 0;
  /// Changes it; its stores, flushes and fences are reported (storelog/storelog.hpp).
  virtual Status apply(const Operation& operation) = 0;
  /// What the operation must do, on a plain DRAM model of it.
  virtual void apply_to_model(const Operation& operation, Contents& model) const = 0;
  /// Opens what a crash left, recovery included. Returns why not, or null.
  virtual const char* open(std::byte* pool, std::size_t bytes) = 0;
  /// Lists all it holds, in any order but a queue's; checks its invariants. Returns what is broken,
  /// or null.
  virtual const char* contents(Contents& found) = 0;
  /// Bytes that are taken but that nothing reaches, after open().
  virtual std::uint64_t leaked_bytes() = 0;
  /// Drops what lives in DRAM, without a store to the pool.
  virtual void close() = 0;
};

} // namespace nearfar::crash
