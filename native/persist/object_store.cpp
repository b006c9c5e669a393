#include "persist/object_store.hpp"

#include <algorithm>
#include <cstring>

namespace nearfar::persist {

namespace {
constexpr std::uint64_t types_type = 0x7479706573; // for pmempool info
constexpr std::uint64_t log_type = 0x6c6f67;
} // namespace

/// Reports stores to a range, and makes them durable.
void ObjectStore::make_durable(const void* at, std::size_t bytes, Site site) {
  storelog::store(at, bytes, site);
  write_back_.flush(at, bytes, site);
  write_back_.fence(site);
}

Status ObjectStore::write_types() {
  const std::size_t types = schema_.types.size_bytes();
  const std::size_t links = schema_.links.size_bytes();
  Status taken = storage_.allocator->allocate(&head()->types, types + links, types_type, true);
  if (!taken) return taken.error();
  std::byte* at = storage_.base + head()->types;
  std::memcpy(at, schema_.types.data(), types);
  if (links > 0) std::memcpy(at + types, schema_.links.data(), links);
  make_durable(at, types + links);
  return Done{};
}

Result<std::unique_ptr<ObjectStore>>
ObjectStore::create(const StorageView& storage, const Schema& schema, const StoreOptions& options) {
  if (storage.root_bytes < root_bytes(schema))
    return Error::make(Errc::bad_input, "the root of pool %.150s is too small", storage.name);
  if (options.path == Path::undo && storage.pool == nullptr)
    return Error::make(Errc::unsupported, "the undo path wants a pool of libpmemobj")
        .try_next("use the redo path");
  std::unique_ptr<ObjectStore> store(new ObjectStore(storage, schema));
  StoreHead& head = *store->head();
  for (std::uint64_t* const link : {&head.types, &head.log}) // an interrupted creation may set them
    if (Status s = storage.allocator->release(link); !s) return s.error();
  head.layout_hash = schema.hash;
  head.path = options.path;
  head.type_count = static_cast<std::uint32_t>(schema.types.size());
  head.link_count = schema.links.size();
  if (Status s = store->write_types(); !s) return s.error();
  if (options.path == Path::redo) {
    head.log_lines = std::max(options.log_bytes / os::cache_line_bytes, smallest_log_lines);
    const std::size_t bytes = head.log_lines * os::cache_line_bytes;
    if (Status s = storage.allocator->allocate(&head.log, bytes, log_type, true); !s)
      return s.error();
    head.log_start = 1; // an empty line, all zeros, is never record number 1
  }
  store->make_durable(&head, sizeof head);
  head.magic = StoreHead::expected_magic;
  store->make_durable(&head.magic, sizeof head.magic);
  if (Status s = store->start(); !s) return s.error();
  return store;
}

Status ObjectStore::check_head() const {
  const StoreHead& head = *this->head();
  const auto refuse = [&](const char* why, const char* next) {
    return Error::make(Errc::bad_input, "pool %.120s %s", storage_.name, why).try_next("%s", next);
  };
  if (storage_.root_bytes < sizeof head || head.magic != StoreHead::expected_magic)
    return refuse("was not finished when it was made, or holds no typed objects",
                  "remove it and make it anew");
  if (head.layout_hash != schema_.hash)
    return refuse("has the version this program knows, but its types are laid out otherwise",
                  "open it with the program that made it; raise the version when a layout changes");
  const bool fits = storage_.root_bytes >= root_bytes(schema_) &&
                    (head.path == Path::undo ||
                     (head.path == Path::redo && head.log_lines >= smallest_log_lines &&
                      head.log_lines <= storage_.bytes / os::cache_line_bytes &&
                      head.log <= storage_.bytes - head.log_lines * os::cache_line_bytes));
  if (!fits) return refuse("has a damaged head", "`nearfar pool check` looks closer");
  return Done{};
}

/// Recovers, then finds the allocated objects.
Status ObjectStore::start() {
  if (path() != Path::redo) return Done{};
  StoreHead& head = *this->head();
  log_.emplace(LogPlace{storage_.base, storage_.bytes, &head.log_start, storage_.base + head.log,
                        head.log_lines},
               write_back_);
  Result<std::size_t> applied = log_->recover();
  if (!applied) return applied.error();
  recovered_ = *applied;
  if (has_secrets() && recovered_ > 0) log_->scrub();
  heap_.emplace(storage_, &head.chunks, write_back_);
  return heap_->load();
}

Result<std::unique_ptr<ObjectStore>> ObjectStore::open(const StorageView& storage,
                                                       const Schema& schema) {
  std::unique_ptr<ObjectStore> store(new ObjectStore(storage, schema));
  if (Status s = store->check_head(); !s) return s.error();
  if (Status s = store->start(); !s) return s.error();
  return store;
}

bool ObjectStore::has_secrets() const {
  for (std::uint32_t type = 0; type < schema_.types.size(); ++type)
    if (overwrites(type)) return true;
  return false;
}

ObjectStore::~ObjectStore() {
  if (!log_ || !heap_) return;
  if (has_secrets())
    log_->scrub();
  else
    log_->drain();
  heap_->reclaim(log_->tail()); // chunks of one object go back to the pool
}

} // namespace nearfar::persist
