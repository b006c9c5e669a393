// Persistent pools: files of libpmemobj, so that `pmempool info|check` and all of PMDK's tools work
// on them. They contain the objects of the typed layer and of structures.
//
// Contents       libpmemobj's heap, and in its root object first a PoolHead (poolformat/heads.hpp),
//                then the root of the pool's owner: the typed layer or a structure. The root is
//                zeroed when the pool is created. All links are offsets from base().
// Place          a tier that can hold one: shm:FILE (a tmpfs emulates persistent memory),
//                fsdax:FILE (must be DAX), file:FILE (any disk; durable by msync). A directory
//                instead of a file makes a pool without a name, which is removed when it is closed,
//                even by kill -9: for measurements. devdax:DEVICE holds one pool, as large as the
//                device. numa:N makes a pool without a name in memory of only that node (emulated),
//                which is verified. The option `populate` touches every page; numa: always does.
// Memory         allocate() links the block into a word of the pool atomically: after a crash both
//                the block and the link exist, or neither; release() likewise. About 1 to 2 us
//                each: for chunks, not for nodes. Memory begins on a cache line; the 8 bytes before
//                it are the offset of libpmemobj's own object.
// Durability     allocate(), release() and create() are durable on return. The caller makes its own
//                stores durable according to durability(): flush lines and fence, only fence on a
//                machine whose caches survive (eADR), or os::sync_range.
// Units          bytes. Offset 0 is null.
// Errors         by value. open(): not_found; bad_input (not a pool, another layout, another
//                version, cut short; each has its message); unsupported (another process or another
//                Pool has it open; a tier that cannot hold a pool); no_permission. create():
//                exists, no_space, bad_input (too small). allocate(): no_space, without an effect.
// Thread safety  allocate() and release() may be called by several threads on different words; open
//                and close by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.hpp"
#include "persist/durability.hpp"
#include "persist/pool_file.hpp"
#include "poolformat/heads.hpp"
#include "tier/spec.hpp"

struct pmemobjpool; // PMEMobjpool of libpmemobj

namespace nearfar::persist {

using poolformat::PoolHead;

inline constexpr std::size_t smallest_pool_bytes = 8 << 20; ///< PMEMOBJ_MIN_POOL

/// Name and version of a program's data, stored in the pool's layout string, "NAME;version=N".
struct Layout {
  const char* name = "";
  std::uint32_t version = 1;
};

struct PoolOptions {
  std::size_t bytes = 0; ///< rounded up to whole pages of 4 KiB: libpmemobj maps no part of one
  std::size_t root_bytes = 0;
  bool zero_on_free = false; ///< memory is overwritten, durably, before it is freed
  bool temporary = false;    ///< devdax: closing removes the pool from the device
};

class Pool {
public:
  static Result<Pool> create(const tier::Spec& place, const Layout& layout,
                             const PoolOptions& options);
  /// A pool whose creation a crash has interrupted is finished with the options `finish_with`, or
  /// refused if that is null.
  static Result<Pool> open(const tier::Spec& place, const Layout& layout,
                           const PoolOptions* finish_with = nullptr);
  Pool(Pool&&) = default; // and no copies; destruction closes
  Pool& operator=(Pool&&) = default;

  std::byte* base() const { return base_; }
  std::size_t bytes() const { return head_->pool_bytes; }
  std::byte* root() const { return base_ + head_->root; }
  std::size_t root_bytes() const { return head_->root_bytes; }
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  std::uint64_t offset_of(const void* address) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
  }

  /// Allocates `bytes` > 0 of memory on a cache line and stores its offset in `*link`, a word of
  /// this pool, atomically. `type` is libpmemobj's type number, for tools; the memory is zeroed if
  /// requested.
  Status allocate(std::uint64_t* link, std::size_t bytes, std::uint64_t type, bool zeroed);
  /// Stores 0 in `*link` and frees the block that it linked (none if it is 0), atomically.
  Status release(std::uint64_t* link);
  /// Usable bytes of the block at `offset`: at least those passed to allocate().
  std::size_t usable_bytes(std::uint64_t offset) const;

  Durability durability() const { return durability_; }
  /// True if DRAM emulates persistent memory: every figure is emulated.
  bool emulated() const { return kind_->loses_all(); }
  /// Whether libpmemobj treats the pool as persistent memory: flushes with instructions, not
  /// msync().
  bool is_pmem() const { return is_pmem_; }
  bool zero_on_free() const { return (head_->flags & 1u) != 0; }
  const std::string& path() const { return path_; }
  /// For code that calls libpmemobj itself, such as transactions on the undo path.
  pmemobjpool* handle() const { return pool_.get(); }

private:
  struct Close {
    void operator()(pmemobjpool* pool) const;
  };
  Pool() = default;
  struct Opened;
  template <class Call>
  static Opened call_libpmemobj(const tier::Spec& place, const Call& call);
  static Result<Pool> attach(const Opened& opened, const tier::Spec& place, const char* path);
  Status populate(const tier::Spec& place, std::size_t bytes);
  Status make_root(const PoolOptions& options);
  Status find_root();
  bool has_root() const;
  Status finish_being_zeroed();
  Status free_and_unlink(std::uint64_t offset, std::uint64_t* link);

  PoolFile file_; // before the pool, which is closed first
  std::unique_ptr<pmemobjpool, Close> pool_;
  std::byte* base_ = nullptr;
  PoolHead* head_ = nullptr;
  std::unique_ptr<std::mutex> being_zeroed_; ///< serializes zero_on_free
  std::string path_;
  const tier::TierKind* kind_ = nullptr;
  bool is_pmem_ = false;
  Durability durability_ = Durability::flush;
};

/// The tier that holds an existing pool file, according to its file system, for programs that are
/// given a path alone: shm on a tmpfs, fsdax where DAX, file otherwise.
Result<tier::Spec> place_of(const char* path);

} // namespace nearfar::persist
