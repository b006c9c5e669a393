// An untyped transaction, on which `tx` (nearfar/persist.hpp) is built.
//
// Redo path      Writes are appended to a log record in volatile memory; find() returns the
//                thread's own writes; the pool changes only at commit. Abort discards the record.
// Undo path      Each range is snapshotted once by libpmemobj, then stored in place. A range that
//                begins within a known range or at its end extends that range.
// Failures       a failed operation (no memory, no log space, an address outside of the pool) marks
//                it rollback-only: later calls do nothing, commit() aborts and returns the first
//                error.
// Nesting        a transaction inside a transaction of the same store is the outer one
//                (Transaction::of); the failure of an inner one marks all of them rollback-only.
// Thread safety  a transaction belongs to one thread; it holds its guards until it has ended.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "persist/few.hpp"
#include "persist/object_store.hpp"

namespace nearfar::persist {

class Transaction {
public:
  /// Starts a transaction and locks `on` until the destructor. If it cannot start, failed() is
  /// true.
  Transaction(ObjectStore& store, guard& on);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction(); ///< aborts, unless commit() was called

  /// The transaction of this thread on `store`, null if there is none.
  static Transaction* of(const ObjectStore& store);

  /// Holds one more guard to the end.
  void hold(guard& on);
  /// Whether this transaction, or one around it, holds a guard.
  bool holds(const guard& on) const;

  /// Changes `bytes` (at most RecordEntry::longest_write) at `at`, an address in the pool.
  /// Precondition: all writes to one address in a transaction have the same size, and ranges do not
  /// overlap.
  void write(void* at, const void* value, std::uint32_t bytes, Site site = Site::current()) {
    if (count_ == 0 || !rewrite(at, value, bytes)) write_new(at, value, bytes, site);
  }
  /// The value that this transaction, or one around it, has written at `at` but not applied yet;
  /// else null.
  const std::byte* find(const void* at) const {
    for (const Transaction* s = this; s != nullptr; s = s->outer_)
      if (s->count_ != 0)
        if (const PendingWrite* found = s->lookup(at)) return found->data;
    return nullptr;
  }

  /// Reserves memory for `bytes` of a type; offset 0 if there is none. It is freed at the end
  /// unless it was published.
  std::uint64_t take(std::uint32_t type, std::size_t bytes);
  /// Turns reserved and filled memory into an object when this transaction commits. The caller
  /// writes the link to it.
  void publish(std::uint64_t offset, std::uint32_t type, std::size_t bytes,
               Site site = Site::current());
  /// Frees an object when this transaction commits. Freeing twice, or an invalid address, rolls
  /// back.
  void free(std::uint64_t offset, std::uint32_t type, std::size_t bytes,
            Site site = Site::current());

  /// Returns Done if the changes are durable, no_space if nothing changed. os_error (redo path):
  /// the changes are made, but their durability is unknown; all later commits fail, too.
  Status commit();
  void mark_rollback_only(const Error& error) {
    if (!error_) error_ = error;
  }
  bool failed() const { return error_.has_value(); }
  const std::optional<Error>& error() const { return error_; }

private:
  static constexpr std::size_t inline_bytes = 1024; ///< whole lines, as RedoLog::commit() wants
  static constexpr std::size_t inline_slots = 16;

  struct PendingWrite {
    const void* at;
    std::byte* data;
    std::uint32_t bytes;
  };
  struct Taken {
    std::uint64_t offset;
    std::size_t bytes;
    std::uint32_t type;
    bool published;
    alignas(8) std::byte action[128]; ///< undo path: libpmemobj's pobj_action
  };
  /// A change whose log call the mutation suite has removed (storelog::log()). It is in no record,
  /// and is made in place at commit.
  struct Unlogged {
    std::byte* at;
    RecordEntry::Kind kind;
    std::vector<std::byte> bytes;
    Site site;
  };
  struct SnapshotRange {
    const std::byte* first;
    const std::byte* end;
  };

  const PendingWrite* lookup(const void* at) const;
  bool rewrite(void* at, const void* value, std::uint32_t bytes);
  void write_new(void* at, const void* value, std::uint32_t bytes, const Site& site);
  std::byte* append(std::uint64_t offset, RecordEntry::Kind kind, const void* data,
                    std::uint32_t bytes, Site site);
  std::byte* room(std::size_t bytes);
  void remember(const PendingWrite& write);
  void change_bits(std::uint64_t word, RecordEntry::Kind kind, std::uint64_t mask, Site site);
  void store_unlogged(const Unlogged& change) const;
  void append_content(std::uint64_t offset, std::size_t bytes, Site site);
  std::byte* whole_record();
  Status commit_redo();
  std::uint64_t take_redo(std::uint32_t type, std::size_t bytes);
  void free_redo(std::uint64_t offset, std::uint32_t type, Site site);
  void give_back();
  void end();
  bool inside(const void* at, std::size_t bytes) const;
  Taken* taken_at(std::uint64_t offset);

  // undo path (transaction_undo.cpp)
  void begin_undo();
  void write_undo(void* at, const void* value, std::size_t bytes, const Site& site);
  bool snapshot(const std::byte* at, std::size_t bytes, const Site& site);
  std::uint64_t take_undo(std::uint32_t type, std::size_t bytes);
  void publish_undo(Taken& taken, std::size_t bytes, Site site);
  void free_undo(std::uint64_t offset, std::uint32_t type, std::size_t bytes, Site site);
  void cancel_unpublished();
  Status commit_undo();
  void abort_undo();

  ObjectStore* store_;
  Transaction* outer_;
  bool ended_ = false;
  bool begun_undo_ = false;
  bool fence_first_ = false; ///< content that is in no record has to be durable before the record
  Few<guard*, 2> more_guards_;
  guard* guard_;
  std::optional<Error> error_;

  std::size_t count_ = 0; ///< of writes that find() knows
  std::array<PendingWrite, inline_slots> slots_;
  std::unique_ptr<std::unordered_map<const void*, PendingWrite>> index_; ///< beyond inline_slots
  std::byte* block_;                                                     ///< what is appended to
  std::size_t used_;                                                     ///< of that block
  std::size_t block_size_;                                               ///< of that block
  std::size_t total_ = sizeof(RecordHead);
  std::vector<std::pair<std::unique_ptr<std::byte[]>, std::size_t>> blocks_; ///< and bytes used
  std::size_t inline_used_ = sizeof(RecordHead);
  std::vector<Site> sites_; ///< of each entry, while stores are recorded
  std::vector<Unlogged> unlogged_;
  Few<Taken, 2> taken_;
  Few<std::uint64_t, 8> freed_;
  Few<SnapshotRange, 16> ranges_; ///< undo path: snapshotted
  alignas(16) std::byte inline_[inline_bytes];
};

/// Not for users: the innermost transaction of this thread.
[[gnu::tls_model("initial-exec")]] inline thread_local constinit Transaction* current_transaction =
    nullptr;

/// Holds a guard for reading, shared with others. Has no effect if this thread's transaction holds
/// it.
class Reading {
public:
  explicit Reading(guard& on);
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading();

private:
  friend class Transaction;
  guard* guard_;
  Reading* outer_;
  bool locked_;
};

} // namespace nearfar::persist
