// The undo path: libpmemobj's transactions under the same front end.
//
// libpmemobj flushes and fences by itself; a recorder intercepts its calls.
#include <cerrno>
#include <cstring>
#include <libpmemobj.h>

#include "persist/failure.hpp"
#include "persist/store_value.hpp"
#include "persist/transaction.hpp"

namespace nearfar::persist {

namespace {

static_assert(sizeof(pobj_action) <= 128);

pobj_action* action_of(std::byte* bytes) { return reinterpret_cast<pobj_action*>(bytes); }

Error failure(const char* doing, int code) {
  Error error = Error::make(is_full(code) ? Errc::no_space : Errc::os_error,
                            "libpmemobj cannot %s: %s", doing, reason(code));
  error.os_errno = code;
  return error.try_next(
      "the transaction was rolled back; if the pool is full, remove objects first");
}

} // namespace

void Transaction::begin_undo() {
  if (pmemobj_tx_stage() != TX_STAGE_NONE)
    return mark_rollback_only(
        Error::make(Errc::bad_input, "this thread is in a libpmemobj transaction already")
            .try_next("end it first: libpmemobj has one pool a thread at a time"));
  const int code = pmemobj_tx_begin(store_->storage_.pool, nullptr, TX_PARAM_NONE);
  if (code == 0)
    begun_undo_ = true;
  else {
    pmemobj_tx_end();
    mark_rollback_only(failure("begin a transaction", code));
  }
}

/// Snapshots the part that no earlier range covers. A range that begins before a known one is
/// passed on as a whole: libpmemobj leaves out the bytes that it has snapshotted.
bool Transaction::snapshot(const std::byte* at, std::size_t bytes, const Site& site) {
  const std::byte* end = at + bytes;
  const std::byte** grown = nullptr; // the end of a known range, which this one extends
  for (SnapshotRange& range : ranges_) {
    if (static_cast<std::size_t>(at - range.first) > // at < first becomes a large number
        static_cast<std::size_t>(range.end - range.first))
      continue;
    if (end <= range.end) return true;
    at = range.end;
    grown = &range.end;
    break;
  }
  bytes = static_cast<std::size_t>(end - at);
  if (storelog::log(at, bytes, site)) {
    const int code = pmemobj_tx_xadd_range_direct(at, bytes, POBJ_XADD_NO_ABORT);
    if (code != 0) return mark_rollback_only(failure("snapshot", code)), false;
  }
  if (grown != nullptr)
    *grown = end;
  else
    ranges_.push_back({at, end});
  return true;
}

void Transaction::write_undo(void* at, const void* value, std::size_t bytes, const Site& site) {
  if (!snapshot(static_cast<std::byte*>(at), bytes, site)) return;
  store_value(static_cast<std::byte*>(at), value, bytes);
  storelog::store(at, bytes, site);
}

std::uint64_t Transaction::take_undo(std::uint32_t type, std::size_t bytes) {
  taken_.push_back({0, bytes, type, false, {}});
  Taken& taken = taken_.back();
  const PMEMoid object =
      pmemobj_reserve(store_->storage_.pool, action_of(taken.action), bytes, type + 1);
  if (OID_IS_NULL(object)) {
    taken_.pop_back();
    mark_rollback_only(failure("allocate", errno));
    return 0;
  }
  taken.offset = object.off;
  return object.off;
}

void Transaction::publish_undo(Taken& taken, std::size_t bytes, Site site) {
  const std::byte* at = store_->storage_.base + taken.offset;
  storelog::store(at, bytes, site);
  int code = pmemobj_tx_xpublish(action_of(taken.action), 1, POBJ_XPUBLISH_NO_ABORT);
  if (code != 0) return mark_rollback_only(failure("publish", code));
  // New memory needs no snapshot, but a flush at commit.
  code = pmemobj_tx_xadd_range_direct(at, bytes, POBJ_XADD_NO_SNAPSHOT | POBJ_XADD_NO_ABORT);
  if (code != 0) return mark_rollback_only(failure("publish", code));
  ranges_.push_back({at, at + bytes});
}

void Transaction::free_undo(std::uint64_t offset, std::uint32_t type, std::size_t bytes,
                            Site site) {
  PMEMoid object = pmemobj_oid(store_->storage_.base);
  object.off = offset;
  std::byte* at = store_->storage_.base + offset;
  if (store_->overwrites(type)) {
    if (!snapshot(at, bytes, site)) return;
    std::memset(at, 0, bytes);
    storelog::store(at, bytes, site);
  }
  const int code = pmemobj_tx_xfree(object, POBJ_XFREE_NO_ABORT);
  if (code != 0) mark_rollback_only(failure("free", code));
}

/// Frees memory that was taken and not published; libpmemobj drops the other actions itself.
void Transaction::cancel_unpublished() {
  for (Taken& taken : taken_)
    if (!taken.published) pmemobj_cancel(store_->storage_.pool, action_of(taken.action), 1);
  taken_.clear();
}

Status Transaction::commit_undo() {
  cancel_unpublished();
  pmemobj_tx_commit();
  begun_undo_ = false;
  const int code = pmemobj_tx_end();
  if (code == 0) return Done{};
  return failure("commit", code);
}

void Transaction::abort_undo() {
  cancel_unpublished();
  begun_undo_ = false;
  if (pmemobj_tx_stage() == TX_STAGE_WORK) pmemobj_tx_abort(ECANCELED);
  pmemobj_tx_end();
}

} // namespace nearfar::persist
