// The memory of a pool: its root, chunks linked atomically, and their end.
#include "persist/pool.hpp"

#include <cerrno>
#include <cstring>
#include <libpmemobj.h>

#include "persist/failure.hpp"

namespace nearfar::persist {

namespace {

constexpr std::size_t line = 64;
constexpr std::uint64_t zero_on_free_flag = 1;

std::uint64_t up_to_line(std::uint64_t offset) { return (offset + line - 1) & ~(line - 1); }

struct RootPlan {
  pmemobjpool* pool;
  const PoolOptions* options;
};

/// Runs inside libpmemobj's allocation of the root object, which is atomic.
int construct_root(pmemobjpool* pool, void* object, void* plan) {
  const PoolOptions& options = *static_cast<RootPlan*>(plan)->options;
  std::memset(object, 0, pmemobj_root_size(pool));
  PoolHead head{};
  const auto offset =
      static_cast<std::uint64_t>(static_cast<char*>(object) - reinterpret_cast<char*>(pool));
  head.magic = PoolHead::expected_magic;
  head.pool_bytes = options.bytes;
  head.root = up_to_line(offset + sizeof head);
  head.root_bytes = options.root_bytes;
  head.flags = options.zero_on_free ? zero_on_free_flag : 0;
  std::memcpy(object, &head, sizeof head);
  pmemobj_persist(pool, object, sizeof head + line + options.root_bytes);
  return 0;
}

Error out_of_memory(std::size_t bytes, const char* path) {
  const int code = errno;
  Error error = Error::make(is_full(code) ? Errc::no_space : Errc::os_error,
                            "pool %.120s has no %zu bytes left: %.80s", path, bytes, reason(code));
  error.os_errno = code;
  return error.try_next("remove what is not needed, or make a larger pool; nothing was changed");
}

/// libpmemobj's object that holds the block at `offset`.
PMEMoid object_at(const Pool& pool, std::uint64_t offset) {
  PMEMoid object = pmemobj_oid(pool.base());
  std::memcpy(&object.off, pool.at(offset - 8), 8);
  return object;
}

Error cannot_free(const char* path) {
  return Error::make(Errc::os_error, "cannot free memory of pool %.100s: %.100s", path,
                     pmemobj_errormsg())
      .try_next("run `nearfar pool check` on it");
}

} // namespace

Status Pool::make_root(const PoolOptions& options) {
  RootPlan plan{handle(), &options};
  const PMEMoid root = pmemobj_root_construct(
      handle(), sizeof(PoolHead) + line + options.root_bytes, construct_root, &plan);
  if (OID_IS_NULL(root)) return out_of_memory(options.root_bytes, path_.c_str());
  head_ = reinterpret_cast<PoolHead*>(base_ + root.off);
  return Done{};
}

bool Pool::has_root() const { return pmemobj_root_size(handle()) > 0; }

Status Pool::find_root() {
  const std::size_t size = pmemobj_root_size(handle());
  const auto refuse = [&](const char* why) {
    return Error::make(Errc::bad_input, "pool %s %s", path_.c_str(), why)
        .try_next("make a new pool: its creation was not finished, or another program made it");
  };
  if (size < sizeof(PoolHead)) return refuse("has no root");
  head_ = reinterpret_cast<PoolHead*>(base_ + pmemobj_root(handle(), size).off);
  if (head_->magic != PoolHead::expected_magic) return refuse("was not made by nearfar");
  const std::uint64_t first = offset_of(head_) + sizeof(PoolHead);
  const std::uint64_t end = offset_of(head_) + size;
  const std::uint64_t root = head_->root;
  if (root < first || root > end || head_->root_bytes > end - root)
    return refuse("has a root that leaves its object");
  return Done{};
}

Status Pool::allocate(std::uint64_t* link, std::size_t bytes, std::uint64_t type, bool zeroed) {
  // Room to move to a line, and for the word before it.
  pobj_action actions[2];
  const PMEMoid taken = pmemobj_xreserve(handle(), &actions[0], bytes + line + 8, type,
                                         zeroed ? POBJ_XALLOC_ZERO : 0);
  if (OID_IS_NULL(taken)) return out_of_memory(bytes, path_.c_str());
  const std::uint64_t offset = up_to_line(taken.off + 8);
  std::memcpy(at(offset - 8), &taken.off, 8);
  pmemobj_persist(handle(), at(offset - 8), 8);
  pmemobj_set_value(handle(), &actions[1], link, offset);
  if (pmemobj_publish(handle(), actions, 2) == 0) return Done{};
  const Error error = out_of_memory(bytes, path_.c_str());
  pmemobj_cancel(handle(), actions, 1);
  return error;
}

std::size_t Pool::usable_bytes(std::uint64_t offset) const {
  const PMEMoid object = object_at(*this, offset);
  return pmemobj_alloc_usable_size(object) - (offset - object.off);
}

/// Frees the block at `offset` and clears the word that links it, atomically.
Status Pool::free_and_unlink(std::uint64_t offset, std::uint64_t* link) {
  pobj_action actions[2];
  pmemobj_defer_free(handle(), object_at(*this, offset), &actions[0]);
  pmemobj_set_value(handle(), &actions[1], link, 0);
  if (pmemobj_publish(handle(), actions, 2) == 0) return Done{};
  return cannot_free(path_.c_str());
}

/// Zeroes and frees the block that release() unlinked, if any.
Status Pool::finish_being_zeroed() {
  const std::uint64_t offset = head_->being_zeroed;
  if (offset == 0) return Done{};
  pmemobj_memset(handle(), at(offset), 0, usable_bytes(offset), 0);
  return free_and_unlink(offset, &head_->being_zeroed);
}

Status Pool::release(std::uint64_t* link) {
  const std::uint64_t offset = *link;
  if (offset == 0) return Done{};
  if (!zero_on_free()) return free_and_unlink(offset, link);
  // Zeros may be stored only when no link reaches the block, and must be durable before the memory
  // is free: the block moves to `being_zeroed` first, where the next opening of the pool would
  // continue.
  const std::lock_guard lock(*being_zeroed_);
  pobj_action actions[2];
  pmemobj_set_value(handle(), &actions[0], &head_->being_zeroed, offset);
  pmemobj_set_value(handle(), &actions[1], link, 0);
  if (pmemobj_publish(handle(), actions, 2) != 0) return cannot_free(path_.c_str());
  return finish_being_zeroed();
}

} // namespace nearfar::persist
