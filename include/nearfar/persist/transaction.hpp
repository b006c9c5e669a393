// The operations of a transaction. pool::transact() passes a `tx` to its body. A `tx` proves that a
// guard is held: only transact() can create one.
//
// tx.make<T>(values...)        new memory, written freely until it is published; freed otherwise
// tx.publish(field, fresh)     links it: after the commit it is an object
// field.set(tx, value)         changes a field
// tx.free(pointer)             frees an object that is no longer linked
// tx.make_array<T>(n)          the same for arrays
// tx.hold(guard)               acquires one more guard until the end
// After the first failed operation the transaction ends with that error and changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "nearfar/persist/array.hpp"
#include "nearfar/persist/field.hpp"
#include "nearfar/persist/layout.hpp"
#include "persist/transaction.hpp"

namespace nearfar::persist {

/// New memory that is not linked yet. Writes are not logged; it is freed at the end of the
/// transaction unless publish() links it. False if there was no memory: the transaction will fail.
template <class T, class Pool>
class fresh {
public:
  fresh(fresh&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), offset_(std::exchange(other.offset_, 0)) {}
  fresh& operator=(fresh&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(offset_, other.offset_);
    return *this;
  }
  fresh(const fresh&) = delete; // one owner: publish(field, std::move(fresh)) hands it on
  fresh& operator=(const fresh&) = delete;

  explicit operator bool() const { return object_ != nullptr; }
  const T* operator->() const { return object_; }
  const T& operator*() const { return *object_; }

  /// Writes a member, such as `node.set(&list_node::key, 5)`; does nothing if the allocation
  /// failed.
  template <class Member, class V>
  void set(Member T::*member, const V& value) {
    if (object_ != nullptr) detail::access::value(object_->*member) = value;
  }

private:
  friend class tx<Pool>;
  fresh(T* object, std::uint64_t offset) : object_(object), offset_(offset) {}
  T* object_;
  std::uint64_t offset_;
};

/// A new array, with the same rules. Its elements are initially 0.
template <class T, class Pool>
class fresh_array {
public:
  fresh_array(fresh_array&& other) noexcept
      : value_(std::exchange(other.value_, array<T, Pool>())) {}
  fresh_array(const fresh_array&) =
      delete; // one owner: publish(field, std::move(fresh)) hands it on
  fresh_array& operator=(const fresh_array&) = delete;

  explicit operator bool() const { return static_cast<bool>(value_); }
  std::span<T> raw() const { return value_.raw(); }

private:
  friend class tx<Pool>;
  explicit fresh_array(const array<T, Pool>& value) : value_(value) {}
  array<T, Pool> value_;
};

/// Passed to the body of read(): proves that the guard is held, shared.
template <class Pool>
class reader {
public:
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;
  const typename Pool::root& root() const { return *root_; }

private:
  template <class>
  friend class pool;
  explicit reader(const typename Pool::root& root) : root_(&root) {}
  const typename Pool::root* root_;
};

template <class Pool>
class tx {
public:
  using root_type = typename Pool::root;

  tx(const tx&) = delete;
  tx& operator=(const tx&) = delete;

  root_type& root() const { return *root_; }

  /// Returns a new object of a type that the root reaches; members in order, missing ones zero.
  template <class T, class... V>
  [[nodiscard]] fresh<T, Pool> make(V&&... values) {
    constexpr std::uint32_t type = detail::type_index<Pool, T>();
    const std::uint64_t offset = untyped_->take(type, sizeof(T));
    if (offset == 0) return {nullptr, 0};
    return {::new (detail::base_of<Pool> + offset) T{std::forward<V>(values)...}, offset};
  }

  template <class T>
  [[nodiscard]] fresh_array<T, Pool> make_array(std::size_t count) {
    using values = detail::elements<T>;
    array<T, Pool> made;
    made.count_ = count;
    made.offset_ = untyped_->take(detail::type_index<Pool, values>(), count * sizeof(T));
    if (made.offset_ == 0) return fresh_array<T, Pool>({});
    std::uninitialized_value_construct_n(made.raw().data(), count);
    return fresh_array<T, Pool>(made);
  }

  /// Turns fresh memory into an object and links it.
  template <class T>
  void publish(field<ptr<T, Pool>>& link, fresh<T, Pool>&& made, Site site = Site::current()) {
    if (!made) return;
    untyped_->publish(made.offset_, detail::type_index<Pool, T>(), sizeof(T), site);
    link.set(*this, detail::access::make<ptr<T, Pool>>(made.offset_), site);
    made.object_ = nullptr;
  }
  template <class T>
  void publish(field<array<T, Pool>>& link, fresh_array<T, Pool>&& made,
               Site site = Site::current()) {
    if (!made) return;
    using values = detail::elements<T>;
    untyped_->publish(detail::access::offset(made.value_), detail::type_index<Pool, values>(),
                      made.value_.size() * sizeof(T), site);
    link.set(*this, made.value_, site);
    made.value_ = {};
  }
  /// Turns fresh memory into an object that is linked by other fresh memory. Publish that memory
  /// later in this transaction, or the object leaks.
  template <class T, class Owner, class Member>
  void publish(fresh<Owner, Pool>& owner, Member Owner::*link, fresh<T, Pool>&& made,
               Site site = Site::current()) {
    if (!made || !owner) return;
    untyped_->publish(made.offset_, detail::type_index<Pool, T>(), sizeof(T), site);
    owner.set(link, detail::access::make<ptr<T, Pool>>(made.offset_));
    made.object_ = nullptr;
  }

  /// Frees an object. Unlink it first, in the same transaction.
  template <class T>
  void free(const ptr<T, Pool>& object, Site site = Site::current()) {
    untyped_->free(detail::access::offset(object), detail::type_index<Pool, T>(), sizeof(T), site);
  }
  template <class T>
  void free(const array<T, Pool>& object, Site site = Site::current()) {
    using values = detail::elements<T>;
    untyped_->free(detail::access::offset(object), detail::type_index<Pool, values>(),
                   object.size() * sizeof(T), site);
  }

  void hold(guard& on) { untyped_->hold(on); }
  /// Returns whether an operation failed: the transaction will end with that error.
  bool failed() const { return untyped_->failed(); }

private:
  template <class>
  friend class pool;
  friend struct detail::access;
  tx(Transaction& untyped, root_type& root) : untyped_(&untyped), root_(&root) {}
  Transaction* untyped_;
  root_type* root_;
};

} // namespace nearfar::persist
