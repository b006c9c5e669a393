#include "persist/transaction.hpp"

#include <algorithm>
#include <cstring>

namespace nearfar::persist {

namespace {

/// Content up to this size is part of the record; larger content is made durable before the record.
constexpr std::size_t largest_inline_content = 512;

[[gnu::tls_model("initial-exec")]] thread_local constinit Reading* current_reading = nullptr;

Error waits_for_itself() {
  return Error::make(Errc::bad_input, "a transaction inside a reading of the same guard")
      .try_next("end the reading first, or read inside the transaction");
}

} // namespace

Transaction* Transaction::of(const ObjectStore& store) {
  Transaction* s = current_transaction;
  while (s != nullptr && s->store_ != &store)
    s = s->outer_;
  return s;
}

Transaction::Transaction(ObjectStore& store, guard& on)
    : store_(&store), outer_(current_transaction), guard_(nullptr), block_(inline_),
      used_(sizeof(RecordHead)), block_size_(inline_bytes) {
  hold(on);
  if (store.path() == Path::undo && !failed()) begin_undo();
  current_transaction = this;
}

Transaction::~Transaction() {
  if (!ended_) {
    if (begun_undo_) abort_undo();
    end();
  }
  for (; !more_guards_.empty(); more_guards_.pop_back())
    more_guards_.back()->lock_.unlock();
  if (guard_ != nullptr) guard_->lock_.unlock();
}

bool Transaction::holds(const guard& on) const {
  for (const Transaction* s = this; s != nullptr; s = s->outer_)
    if (s->guard_ == &on || std::count(s->more_guards_.begin(), s->more_guards_.end(), &on) > 0)
      return true;
  return false;
}

void Transaction::hold(guard& on) {
  for (const Reading* r = current_reading; r != nullptr; r = r->outer_)
    if (r->guard_ == &on && r->locked_) return mark_rollback_only(waits_for_itself());
  if (holds(on)) return;
  on.lock_.lock();
  if (guard_ == nullptr)
    guard_ = &on;
  else
    more_guards_.push_back(&on);
}

bool Transaction::inside(const void* at, std::size_t bytes) const {
  const StorageView& storage = store_->storage_;
  const auto* first = static_cast<const std::byte*>(at);
  return first >= storage.base && bytes <= storage.bytes &&
         first <= storage.base + (storage.bytes - bytes);
}

const Transaction::PendingWrite* Transaction::lookup(const void* at) const {
  if (index_) {
    const auto found = index_->find(at);
    return found == index_->end() ? nullptr : &found->second;
  }
  for (std::size_t i = 0; i < count_; ++i)
    if (slots_[i].at == at) return &slots_[i];
  return nullptr;
}

void Transaction::remember(const PendingWrite& write) {
  if (count_ < inline_slots) {
    slots_[count_] = write;
  } else {
    if (!index_) {
      index_ = std::make_unique<std::unordered_map<const void*, PendingWrite>>();
      for (const PendingWrite& slot : slots_)
        index_->emplace(slot.at, slot);
    }
    index_->emplace(write.at, write);
  }
  ++count_;
}

/// Space at the end of the record, which does not move: references that find() returned stay valid.
std::byte* Transaction::room(std::size_t bytes) {
  if (bytes > block_size_ - used_) {
    const std::size_t size = std::max(2 * block_size_, bytes);
    if (blocks_.empty())
      inline_used_ = used_;
    else
      blocks_.back().second = used_;
    blocks_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(size), 0);
    block_ = blocks_.back().first.get();
    block_size_ = size;
    used_ = 0;
  }
  std::byte* at = block_ + used_;
  used_ += bytes;
  total_ += bytes;
  return at;
}

/// Adds an entry; returns the address of its data in the record.
std::byte* Transaction::append(std::uint64_t offset, RecordEntry::Kind kind, const void* data,
                               std::uint32_t bytes, Site site) {
  std::byte* at = room(RecordEntry::size(bytes));
  const std::uint64_t word = RecordEntry::word(offset, kind, bytes);
  std::memcpy(at, &word, sizeof word);
  if (bytes % 8 != 0) std::memset(at + 8 + bytes / 8 * 8, 0, 8); // padding is part of the checksum
  std::memcpy(at + 8, data, bytes);
  if (storelog::recording()) sites_.push_back(site);
  return at + 8;
}

bool Transaction::rewrite(void* at, const void* value, std::uint32_t bytes) {
  const PendingWrite* known = lookup(at);
  if (known == nullptr || failed()) return known != nullptr;
  if (bytes == known->bytes)
    std::memcpy(known->data, value, bytes);
  else
    mark_rollback_only(Error::make(Errc::bad_input, "a write of %u bytes where %u were written",
                                   bytes, known->bytes)
                           .try_next("write each field as a whole in a transaction"));
  return true;
}

void Transaction::write_new(void* at, const void* value, std::uint32_t bytes, const Site& site) {
  if (failed()) return;
  if (!inside(at, bytes))
    return mark_rollback_only(
        Error::make(Errc::bad_input, "a write outside pool %.150s", store_->storage_.name)
            .try_next("set fields of objects in the pool, not of copies"));
  if (begun_undo_) return write_undo(at, value, bytes, site);
  if (!storelog::log(at, bytes, site)) [[unlikely]] {
    const auto* from = static_cast<const std::byte*>(value);
    unlogged_.push_back(
        {static_cast<std::byte*>(at), RecordEntry::Kind::write, {from, from + bytes}, site});
    return remember({at, unlogged_.back().bytes.data(), bytes});
  }
  const auto offset =
      static_cast<std::uint64_t>(static_cast<std::byte*>(at) - store_->storage_.base);
  remember({at, append(offset, RecordEntry::Kind::write, value, bytes, site), bytes});
}

Transaction::Taken* Transaction::taken_at(std::uint64_t offset) {
  for (Taken& taken : taken_)
    if (taken.offset == offset) return &taken;
  return nullptr;
}

std::uint64_t Transaction::take(std::uint32_t type, std::size_t bytes) {
  if (failed()) return 0;
  return begun_undo_ ? take_undo(type, bytes) : take_redo(type, bytes);
}

std::uint64_t Transaction::take_redo(std::uint32_t type, std::size_t bytes) {
  Result<std::uint64_t> taken = store_->heap_->take(type, bytes);
  if (!taken && taken.error().code == Errc::no_space) {
    // Recently freed memory becomes available once the log has been drained.
    const std::lock_guard lock(store_->commit_);
    store_->log_->drain();
    if (store_->heap_->reclaim(store_->log_->start())) {
      Result<std::uint64_t> again = store_->heap_->take(type, bytes);
      if (again) {
        taken_.push_back({*again, bytes, type, false, {}});
        return *again;
      }
    }
  }
  if (!taken) {
    mark_rollback_only(taken.error());
    return 0;
  }
  taken_.push_back({*taken, bytes, type, false, {}});
  return *taken;
}

/// The content of a new object, in pieces that an entry can hold.
void Transaction::append_content(std::uint64_t offset, std::size_t bytes, Site site) {
  const std::byte* at = store_->storage_.base + offset;
  for (std::size_t done = 0; done < bytes; done += RecordEntry::longest_write) {
    const auto part =
        static_cast<std::uint32_t>(std::min<std::size_t>(bytes - done, RecordEntry::longest_write));
    append(offset + done, RecordEntry::Kind::write, at + done, part, site);
  }
}

void Transaction::publish(std::uint64_t offset, std::uint32_t, std::size_t bytes, Site site) {
  if (failed()) return;
  Taken* taken = taken_at(offset);
  if (taken == nullptr || taken->published)
    return mark_rollback_only(
        Error::make(Errc::bad_input, "publishing what this transaction has not taken")
            .try_next("publish a fresh object once, in the transaction that made it"));
  taken->published = true;
  if (begun_undo_) return publish_undo(*taken, bytes, site);
  std::byte* at = store_->storage_.base + offset;
  storelog::store(at, bytes, site);
  if (bytes <= largest_inline_content) {
    if (storelog::log(at, bytes, site)) append_content(offset, bytes, site);
  } else {
    store_->write_back_.flush(at, bytes, site);
    fence_first_ = true;
  }
  const BitPlace bit = store_->heap_->bit_of(offset);
  change_bits(bit.word, RecordEntry::Kind::set_bits, bit.mask, site);
}

/// Sets or clears bits of a word of the heap, as part of this transaction.
void Transaction::change_bits(std::uint64_t word, RecordEntry::Kind kind, std::uint64_t mask,
                              Site site) {
  std::byte* at = store_->storage_.base + word;
  if (storelog::log(at, sizeof mask, site)) {
    append(word, kind, &mask, sizeof mask, site);
  } else {
    const auto* from = reinterpret_cast<const std::byte*>(&mask);
    unlogged_.push_back({at, kind, {from, from + sizeof mask}, site});
  }
}

void Transaction::store_unlogged(const Unlogged& change) const {
  const RecordEntry entry{static_cast<std::uint64_t>(change.at - store_->storage_.base),
                          change.kind, static_cast<std::uint32_t>(change.bytes.size()),
                          change.bytes.data()};
  apply_entry(entry, store_->storage_.base);
  storelog::store(change.at, entry.reach(), change.site);
}

void Transaction::free(std::uint64_t offset, std::uint32_t type, std::size_t bytes, Site site) {
  if (failed() || offset == 0) return;
  if (std::count(freed_.begin(), freed_.end(), offset) > 0)
    return mark_rollback_only(
        Error::make(Errc::bad_input, "an object was freed twice in one transaction")
            .try_next("free what is no longer linked, once"));
  freed_.push_back(offset);
  if (begun_undo_) return free_undo(offset, type, bytes, site);
  free_redo(offset, type, site);
}

void Transaction::free_redo(std::uint64_t offset, std::uint32_t type, Site site) {
  const BitPlace bit = store_->heap_->bit_of(offset);
  std::byte* base = store_->storage_.base;
  const Taken* own = taken_at(offset);
  const bool published_here = own != nullptr && own->published;
  const bool allocated =
      bit.word != 0 &&
      (published_here ||
       (__atomic_load_n(reinterpret_cast<std::uint64_t*>(base + bit.word), __ATOMIC_RELAXED) &
        bit.mask) != 0);
  if (!allocated) {
    freed_.pop_back();
    return mark_rollback_only(
        Error::make(Errc::bad_input, "invalid free: not an object of pool %.150s, or freed before",
                    store_->storage_.name)
            .try_next("free what is no longer linked, once"));
  }
  if (store_->overwrites(type))
    if (storelog::log(base + offset, bit.object_bytes, site))
      append(offset, RecordEntry::Kind::zero, &bit.object_bytes, sizeof bit.object_bytes, site);
  change_bits(bit.word, RecordEntry::Kind::clear_bits, bit.mask, site);
}

/// The record in one piece.
std::byte* Transaction::whole_record() {
  if (blocks_.empty()) return inline_;
  blocks_.back().second = used_;
  auto whole = std::make_unique_for_overwrite<std::byte[]>(total_ + os::cache_line_bytes);
  std::byte* to = whole.get();
  std::memcpy(to, inline_, inline_used_);
  to += inline_used_;
  for (const auto& [block, used] : blocks_) {
    std::memcpy(to, block.get(), used);
    to += used;
  }
  blocks_.emplace_back(std::move(whole), 0);
  return blocks_.back().first.get();
}

Status Transaction::commit_redo() {
  if (total_ == sizeof(RecordHead) && unlogged_.empty()) return Done{};
  if (total_ > store_->log_->largest_record())
    return Error::make(Errc::no_space,
                       "a transaction of %zu bytes does not fit the log, which takes %u", total_,
                       store_->log_->largest_record())
        .try_next("split the transaction, or create the pool with a larger log");
  std::byte* record = whole_record();
  const std::lock_guard lock(store_->commit_);
  if (fence_first_) store_->write_back_.fence();
  Status done = store_->log_->commit(record, static_cast<std::uint32_t>(total_),
                                     sites_.empty() ? nullptr : sites_.data());
  for (const Unlogged& change : unlogged_)
    store_unlogged(change);
  for (const std::uint64_t offset : freed_)
    store_->heap_->retire(offset, store_->log_->tail());
  store_->heap_->reclaim(store_->log_->start());
  return done;
}

Status Transaction::commit() {
  if (failed()) return *error_;
  Status done = begun_undo_ ? commit_undo() : commit_redo();
  if (!done) {
    // A failed msync comes after the record: the changes are made, their durability is not sure.
    if (done.error().code != Errc::os_error || begun_undo_) return done.error();
  }
  for (Taken& taken : taken_)
    if (taken.published) taken.offset = 0;
  ended_ = true;
  end();
  return done;
}

/// Frees memory that was taken and not published, or not committed.
void Transaction::give_back() {
  for (const Taken& taken : taken_) {
    if (taken.offset == 0 || !store_->heap_) continue;
    if (store_->overwrites(taken.type)) {
      std::byte* at = store_->storage_.base + taken.offset;
      std::memset(at, 0, taken.bytes);
      store_->make_durable(at, taken.bytes);
    }
    store_->heap_->give_back(taken.offset);
  }
  taken_.clear();
}

void Transaction::end() {
  give_back();
  current_transaction = outer_;
  ended_ = true;
}

Reading::Reading(guard& on) : guard_(&on), outer_(current_reading), locked_(true) {
  if (current_transaction != nullptr && current_transaction->holds(on)) locked_ = false;
  for (const Reading* r = current_reading; r != nullptr; r = r->outer_)
    if (r->guard_ == &on) locked_ = false;
  if (locked_) on.lock_.lock_shared();
  current_reading = this;
}

Reading::~Reading() {
  current_reading = outer_;
  if (locked_) guard_->lock_.unlock_shared();
}

} // namespace nearfar::persist
