// Passes the accesses of instrumented code to a model of caches.
#pragma once

#include "cache/hierarchy_variants.hpp"
#include "storelog/storelog.hpp"

namespace nearfar::bench {

/// Sets the model that receives all accesses of instrumented code from now on; nullptr: none. While
/// it is not null, one thread at a time may run instrumented code.
void set_access_receiver(cache::HierarchyVariants* caches);

/// Passes flushes, also those of libpmemobj, to the model of set_access_receiver().
class FlushReceiver final : public storelog::Listener {
public:
  bool record(storelog::EventKind kind, const void* at, std::size_t bytes, storelog::Site) override;
  /// Number of flush calls, each of any number of lines. On a file, each is an msync.
  std::uint64_t calls() const { return calls_; }

private:
  std::uint64_t calls_ = 0;
};

} // namespace nearfar::bench
