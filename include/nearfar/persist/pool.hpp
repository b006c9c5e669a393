// An open pool of one program's types.
//
// A process may have one pool of a type open at a time: the pool's base is a global of the type, so
// that a pointer is an offset of 8 bytes.
// Thread safety  transact(), read() and persist() from several threads; open and close from one.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/result.hpp"
#include "nearfar/persist/transaction.hpp"
#include "persist/pool.hpp"
#include "persist/transaction.hpp"
#include "tier/spec.hpp"

namespace nearfar::persist {

struct pool_options {
  std::size_t bytes = 64 << 20;
  Path path = Path::redo;
  std::size_t log_bytes = 1 << 20; ///< redo path; the largest transaction takes half of it
  bool zero_on_free = false;       ///< freed memory is overwritten, durably; so is the log at close
};

template <class Pool>
class pool {
public:
  using root_type = typename Pool::root;
  using tx_type = tx<Pool>;
  static_assert(detail::check_layout<Pool>());

  /// Creates a pool in a tier such as "shm:/dev/shm/list.pool". Errors: those of Pool::create.
  static Result<pool> create(const char* place, const pool_options& options = {}) {
    if (Status s = check_single(); !s) return s.error();
    Result<tier::Spec> spec = tier::parse(place);
    if (!spec) return spec.error();
    Result<persist::Pool> file = persist::Pool::create(*spec, layout(), file_options(options));
    if (!file) return file.error();
    return pool(std::move(*file)).with_new_store(options);
  }

  /// Opens a pool in a tier or at a path, and recovers it. Errors: those of Pool::open and
  /// ObjectStore::open.
  static Result<pool> open(const char* place) { return open(place, nullptr); }

  /// Opens the pool, or creates it if there is none. If a crash has interrupted its creation,
  /// finishes the creation with these options.
  static Result<pool> open_or_create(const char* place, const pool_options& options = {}) {
    Result<pool> opened = open(place, &options);
    if (opened || opened.error().code != Errc::not_found) return opened;
    return create(place, options);
  }

  pool(pool&&) noexcept = default;
  pool& operator=(pool&&) = delete;
  ~pool() { // writes all changes back, so that the next opening recovers nothing
    if (inside_ && inside_->store) {
      inside_->store.reset();
      detail::base_of<Pool> = nullptr;
    }
  }

  root_type& root() const { return *reinterpret_cast<root_type*>(store().root()); }

  /// Runs body(tx) as one atomic and durable transaction under `on`. The body returns nothing or a
  /// Status. An error or an exception rolls the transaction back. Inside a transaction of this
  /// thread it is part of that transaction.
  template <class Body>
  Status transact(guard& on, Body&& body) const {
    if (Transaction* outer = Transaction::of(store())) return join(*outer, on, body);
    Transaction untyped(store(), on);
    if (!untyped.failed()) {
      tx_type transaction(untyped, root());
      if (Status s = call(body, transaction); !s) return s.error();
    }
    return untyped.commit();
  }
  /// The same under the pool's own guard: one transaction at a time.
  template <class Body>
  Status transact(Body&& body) const {
    return transact(store().common_guard(), body);
  }

  /// Runs body(reader) while no transaction under `on` changes data; returns its result.
  template <class Body>
  decltype(auto) read(guard& on, Body&& body) const {
    const Reading reading(on);
    const reader<Pool> held(root());
    return body(held);
  }
  template <class Body>
  decltype(auto) read(Body&& body) const {
    return read(store().common_guard(), body);
  }

  /// Makes stores to an array durable: to all elements, or to some.
  template <class T>
  void persist(const array<T, Pool>& values, Site site = Site::current()) const {
    persist(values, 0, values.size(), site);
  }
  template <class T>
  void persist(const array<T, Pool>& values, std::size_t first, std::size_t count,
               Site site = Site::current()) const {
    const std::span<T> range = values.raw().subspan(first, count);
    storelog::store(range.data(), range.size_bytes(), site);
    store().write_back().flush(range.data(), range.size_bytes(), site);
    store().write_back().fence(site);
  }

  /// Returns the number of transactions that recovery found in the log on opening.
  std::size_t recovered() const { return store().recovered(); }
  bool emulated() const { return inside_->file.emulated(); }
  Path path() const { return store().path(); }
  const persist::Pool& file() const { return inside_->file; }

private:
  struct Inside { // in the order of construction
    explicit Inside(persist::Pool&& opened) : file(std::move(opened)), allocator(file) {}
    persist::Pool file;
    PoolStorage allocator;
    std::unique_ptr<ObjectStore> store;
  };

  explicit pool(persist::Pool&& file) : inside_(std::make_unique<Inside>(std::move(file))) {}

  static Layout layout() { return {Pool::name, layout_version<Pool>}; }
  ObjectStore& store() const { return *inside_->store; }

  static Status check_single() {
    if (detail::base_of<Pool> == nullptr) return Done{};
    return Error::make(Errc::unsupported, "a pool of type '%s' is already open in this process",
                       Pool::name)
        .try_next("close it first, or give the other one a pool type of its own");
  }

  static PoolOptions file_options(const pool_options& options) {
    return {options.bytes, ObjectStore::root_bytes(detail::schema_of<Pool>()),
            options.zero_on_free};
  }

  static Result<pool> open(const char* place, const pool_options* finish_with) {
    if (Status s = check_single(); !s) return s.error();
    const bool is_tier = std::strchr(place, ':') != nullptr;
    Result<tier::Spec> spec = is_tier ? tier::parse(place) : place_of(place);
    if (!spec) return spec.error();
    const PoolOptions file = file_options(finish_with != nullptr ? *finish_with : pool_options{});
    Result<persist::Pool> found =
        persist::Pool::open(*spec, layout(), finish_with != nullptr ? &file : nullptr);
    if (!found) return found.error();
    pool opened(std::move(*found));
    const StorageView storage = opened.inside_->allocator.storage();
    if (finish_with != nullptr && !ObjectStore::is_created(storage))
      return opened.with_new_store(*finish_with);
    Result<std::unique_ptr<ObjectStore>> store =
        ObjectStore::open(storage, detail::schema_of<Pool>());
    return opened.with(store);
  }

  Result<pool> with_new_store(const pool_options& options) {
    Result<std::unique_ptr<ObjectStore>> store = ObjectStore::create(
        inside_->allocator.storage(), detail::schema_of<Pool>(), {options.path, options.log_bytes});
    return with(store);
  }

  Result<pool> with(Result<std::unique_ptr<ObjectStore>>& store) {
    if (!store) return store.error();
    inside_->store = std::move(*store);
    detail::base_of<Pool> = inside_->file.base();
    return std::move(*this);
  }

  template <class Body>
  static Status call(Body& body, tx_type& transaction) {
    if constexpr (std::is_void_v<std::invoke_result_t<Body&, tx_type&>>) {
      body(transaction);
      return Done{};
    } else {
      return body(transaction);
    }
  }

  template <class Body>
  Status join(Transaction& outer, guard& on, Body& body) const {
    struct RollbackGuard { // also if an exception passes, which the body of the outer one may catch
      Transaction& untyped;
      bool finished = false;
      ~RollbackGuard() {
        if (!finished)
          untyped.mark_rollback_only(
              Error::make(Errc::bad_input, "a transaction inside this one was taken back"));
      }
    } guard{outer};
    outer.hold(on);
    tx_type transaction(outer, root());
    if (Status s = call(body, transaction); !s) {
      outer.mark_rollback_only(s.error());
      return s.error();
    }
    guard.finished = true;
    if (outer.failed()) return *outer.error();
    return Done{};
  }

  std::unique_ptr<Inside> inside_;
};

} // namespace nearfar::persist
