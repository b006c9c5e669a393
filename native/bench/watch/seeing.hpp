// What the watched benchmark touches, handed to a model of caches.
#pragma once

#include "cache/watched.hpp"
#include "storelog/storelog.hpp"

namespace nearfar::bench {

/// Everything that instrumented code reads and writes, on whatever thread, goes there from now on;
/// nullptr: nowhere. One thread at a time may run instrumented code while it is not null.
void see(cache::Watched* caches);

/// Hands flushes to what see() was given: those of libpmemobj too.
class SeeFlushes final : public storelog::Listener {
public:
  bool record(storelog::EventKind kind, const void* at, std::size_t bytes, storelog::Site) override;
  /// Flushes of any number of lines: on a file, each is an msync.
  std::uint64_t calls() const { return calls_; }

private:
  std::uint64_t calls_ = 0;
};

} // namespace nearfar::bench
