// The object store of a typed pool: its types, heap, log and transactions.
//
// Thread safety  transactions (transaction.hpp) on several threads; creation and destruction on
//                one.
// Errors         open(): bad_input (creation was not finished, another layout, a damaged log).
//                create(): no_space, unsupported (the undo path without a libpmemobj pool).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "persist/guard.hpp"
#include "persist/object_heap.hpp"
#include "persist/redo_log.hpp"
#include "persist/shared_lock.hpp"
#include "persist/storage_view.hpp"
#include "persist/write_back.hpp"
#include "poolformat/heads.hpp"

namespace nearfar::persist {

using poolformat::LinkEntry;
using poolformat::Path;
using poolformat::StoreHead;
using poolformat::TypeEntry;

/// Types and links of a program's objects.
struct Schema {
  std::span<const TypeEntry> types; ///< the first is that of the root
  std::span<const LinkEntry> links;
  std::uint64_t hash = 0;
};

struct StoreOptions {
  Path path = Path::redo;
  std::size_t log_bytes = 1 << 20; ///< redo path; the largest transaction takes half of it
};

class ObjectStore {
public:
  /// Also continues a creation that a crash has interrupted.
  static Result<std::unique_ptr<ObjectStore>>
  create(const StorageView& storage, const Schema& schema, const StoreOptions& options);
  static Result<std::unique_ptr<ObjectStore>> open(const StorageView& storage,
                                                   const Schema& schema);
  static bool is_created(const StorageView& storage) {
    return reinterpret_cast<const StoreHead*>(storage.root)->magic != 0;
  }
  /// Size of the root that a StorageView requires for a schema.
  static std::size_t root_bytes(const Schema& schema) {
    return sizeof(StoreHead) + schema.types[0].bytes;
  }
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;
  ~ObjectStore(); ///< writes everything back and empties the log

  const StorageView& storage() const { return storage_; }
  std::byte* root() const { return storage_.root + sizeof(StoreHead); }
  Path path() const { return head()->path; }
  guard& common_guard() { return guard_; }
  /// Records that recovery applied when the store was opened.
  std::size_t recovered() const { return recovered_; }
  WriteBack& write_back() { return write_back_; }
  /// Simulates a crash: from now on nothing is stored, not even by the destructor.
  void abandon() { log_.reset(); }

private:
  friend class Transaction;

  ObjectStore(const StorageView& storage, const Schema& schema)
      : storage_(storage), schema_(schema), write_back_(storage.durability) {}

  StoreHead* head() const { return reinterpret_cast<StoreHead*>(storage_.root); }
  /// Reports stores to [at, at + bytes), and writes them back.
  void make_durable(const void* at, std::size_t bytes, Site site = Site::current());
  Status write_types();
  Status start();
  Status check_head() const;
  bool overwrites(std::uint32_t type) const {
    return storage_.zero_on_free || (schema_.types[type].flags & TypeEntry::secret) != 0;
  }
  bool has_secrets() const;

  StorageView storage_;
  Schema schema_;
  WriteBack write_back_;
  guard guard_;
  SharedLock commit_; ///< the log, and applying what is in it
  std::optional<RedoLog> log_;
  std::optional<PersistentObjectHeap> heap_;
  std::size_t recovered_ = 0;
};

} // namespace nearfar::persist
