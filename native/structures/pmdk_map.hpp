// The interface of map_atomic, map_tx and map_rp, with a lock: three maps after PMDK's example hash
// maps, for comparison and prediction.
//
// Source         the three maps in PMDK's examples (1.12), whose behavior is followed and whose
//                code is not: 64-bit keys to object handles. Each core's header documents its
//                invariants, its order of durability and how it grows.
// Durability     every call is atomic, and durable when it returns; inside a transaction of the
//                caller's, as its core documents. open() completes operations that a crash
//                interrupted.
// Thread safety  get, insert, remove, size by any number of threads: readers share a lock, a writer
//                holds it exclusively until its changes are durable. A caller that
//                puts calls into a transaction of its own must exclude other threads until the
//                transaction ends: they would see changes that can be undone. open and verify
//                require that no thread writes; for_each may not call the map.
// Errors         no_space: without an effect (without memory to grow, a map is slower, but correct;
//                map_rp refuses). failed_check: the pool is damaged.
//
// A Core has Objects (objects.hpp), create(root), open(root), insert, get, remove, size, for_each
// and `const char* check()`: an error of the map, or null.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "persist/shared_lock.hpp"
#include "structures/objects.hpp"

namespace nearfar::structures {

template <class Core>
class PmdkMap {
public:
  using Objects = typename Core::Objects;

  /// Opens the map whose handle is at `root`, an address in the pool, or makes an empty one if that
  /// is null.
  static Result<std::unique_ptr<PmdkMap>> open(Objects& objects, PMEMoid& root) {
    std::unique_ptr<PmdkMap> map(new PmdkMap(objects));
    Status ready = root.off == 0 ? map->core_.create(root) : map->core_.open(root);
    if (!ready) return ready.error();
    return map;
  }

  /// False if the key was there already: its value stays; that of map_rp is replaced.
  Result<bool> insert(std::uint64_t key, PMEMoid value) {
    const std::unique_lock guard(lock_);
    return core_.insert(key, value);
  }
  std::optional<PMEMoid> get(std::uint64_t key) const {
    const std::shared_lock guard(lock_);
    return core_.get(key);
  }
  /// Returns the removed value, whose object the caller owns.
  Result<std::optional<PMEMoid>> remove(std::uint64_t key) {
    const std::unique_lock guard(lock_);
    return core_.remove(key);
  }
  std::uint64_t size() const {
    const std::shared_lock guard(lock_);
    return core_.size();
  }
  /// Buckets, or slots of an array.
  std::uint64_t capacity() const {
    const std::shared_lock guard(lock_);
    return core_.capacity();
  }

  /// Calls visit(key, value) for each entry, in any order.
  template <class Visit>
  void for_each(Visit visit) const {
    const std::shared_lock guard(lock_);
    core_.for_each(visit);
  }

  /// Checks all invariants, only from the pool. Fails with failed_check.
  Status verify() const {
    const std::shared_lock guard(lock_);
    const char* wrong = core_.check();
    if (wrong == nullptr) return Done{};
    return Error::make(Errc::failed_check, "the map is damaged: %s", wrong)
        .try_next("restore the pool from a copy");
  }

private:
  explicit PmdkMap(Objects& objects) : core_(objects) {}

  Core core_;
  mutable persist::SharedLock lock_;
};

} // namespace nearfar::structures
