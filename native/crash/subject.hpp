// What is put to the test: a persistent structure that can be filled, crashed, reopened and asked.
//
// Thread safety  one thread. None of these is called while another runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "crash/persistency.hpp"
#include "storelog/recorder.hpp"

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

/// Where in the program the power failed.
struct Moment {
  std::uint64_t acknowledged = 0; ///< operations that had ended
  bool in_flight = false;         ///< and one more had begun
  bool finished = false;          ///< the program had come to its end
  CacheLoss loss = CacheLoss::all;
  /// Numbers of the operations of created threads that had ended, where they interleave.
  std::span<const std::uint64_t> operations;
};

/// How an image fails.
enum class Failure : std::uint8_t {
  none,
  refused,        ///< recovery says that it cannot open the image
  broken,         ///< an invariant does not hold
  lost,           ///< an acknowledged operation is not there
  not_atomic,     ///< neither what was before the operation nor what is after it
  leak,           ///< memory that nothing reaches any more
  not_idempotent, ///< recovery, crashed after its end and run again, gives something else
  crashed,        ///< recovery or the check was killed by a signal
  hung,           ///< recovery or the check took too long
  disagreed,      ///< a second opinion found something else in the same image
  failed,         ///< the program, started again, ended with an error
  damaged,        ///< the pool contradicts itself
};

/// Decides whether an image is consistent. A structure under test is one (Subject); so is a
/// program.
class Checked {
public:
  virtual ~Checked() = default;

  /// Opens what a crash left, recovery included. Returns why not, or null.
  virtual const char* open(std::byte* pool, std::size_t bytes, const Moment& moment) = 0;
  /// Of which kind is the reason that open() or contents() gave; none: what that call suggests.
  virtual Failure failure() const { return Failure::none; }
  /// Lists all it holds, in any order but a queue's; checks its invariants. Returns what is broken,
  /// or null.
  virtual const char* contents(Contents& found) = 0;
  /// Bytes that are taken but that nothing reaches, after open().
  virtual std::uint64_t leaked_bytes() = 0;
  /// Drops what lives in DRAM, without a store to the pool.
  virtual void close() = 0;
  /// Images that passed, although what was said of them is another thing than of good pools; and what
  /// was said of the first of them.
  struct Doubt {
    std::uint64_t images = 0;
    std::string said;
  };
  virtual Doubt doubt() const { return {}; }
  /// Where open() is another program that may change its image: the next calls of open() are
  /// recorded, or are not; log() is what the last of them stored, or null if that is not known.
  virtual void record(bool) {}
  virtual const storelog::Log* log() const { return nullptr; }
  /// A second opinion, by other means, on an image in which contents() found `found`; the image
  /// lies in the arena's mirror. Returns the difference, or null; failure() returns its kind.
  virtual const char* confirm(const Moment&, const Contents& /*found*/) { return nullptr; }
};

/// A structure under test: it can be filled, too.
class Subject : public Checked {
public:
  /// Makes an empty structure in a zeroed pool. It counts as durable before the trace begins.
  virtual Status create(std::byte* pool, std::size_t bytes) = 0;
  /// Changes it; its stores, flushes and fences are reported (storelog/storelog.hpp).
  virtual Status apply(const Operation& operation) = 0;
  /// What the operation must do, on a plain DRAM model of it.
  virtual void apply_to_model(const Operation& operation, Contents& model) const = 0;
};

} // namespace nearfar::crash
