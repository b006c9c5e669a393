// What a transaction may do. A `tx` is handed to the function that pool::transact() runs; it holds
// a guard to the end, for nobody else can make one.
//
// tx.make<T>(values...)        new memory, written freely until it is published; freed otherwise
// tx.publish(field, fresh)     links it: from the commit on it is an object
// field.set(tx, value)         changes a field
// tx.free(pointer)             frees an object that is no longer linked
// tx.make_array<T>(n)          the same for arrays
// tx.hold(guard)               one more guard, to the end
// What cannot be done dooms the transaction: it ends with the first error, and nothing has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "nearfar/persist/array.hpp"
#include "nearfar/persist/field.hpp"
#include "nearfar/persist/layout.hpp"
#include "persist/session.hpp"

namespace nearfar::persist {

/// New memory that nothing links yet. Written without a log; freed at the end of the transaction
/// unless publish() took it. False if there was no memory: the transaction will fail.
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

  /// Writes a member, such as `node.set(&list_node::key, 5)`; does nothing where there is no
  /// memory.
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

/// A new array, the same way. Its elements begin as 0.
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

/// What a reading has: proof that its guard is held, shared.
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

  /// A new object of a type that the root reaches, its members given in order (or zero).
  template <class T, class... V>
  [[nodiscard]] fresh<T, Pool> make(V&&... values) {
    constexpr std::uint32_t type = detail::type_index<Pool, T>();
    const std::uint64_t offset = session_->take(type, sizeof(T));
    if (offset == 0) return {nullptr, 0};
    return {::new (detail::base_of<Pool> + offset) T{std::forward<V>(values)...}, offset};
  }

  template <class T>
  [[nodiscard]] fresh_array<T, Pool> make_array(std::size_t count) {
    using values = detail::elements<T>;
    array<T, Pool> made;
    made.count_ = count;
    made.offset_ = session_->take(detail::type_index<Pool, values>(), count * sizeof(T));
    if (made.offset_ == 0) return fresh_array<T, Pool>({});
    std::uninitialized_value_construct_n(made.raw().data(), count);
    return fresh_array<T, Pool>(made);
  }

  /// Makes an object of what is fresh, and links it.
  template <class T>
  void publish(field<ptr<T, Pool>>& link, fresh<T, Pool>&& made, Site site = Site::current()) {
    if (!made) return;
    session_->publish(made.offset_, detail::type_index<Pool, T>(), sizeof(T), site);
    link.set(*this, detail::access::make<ptr<T, Pool>>(made.offset_), site);
    made.object_ = nullptr;
  }
  template <class T>
  void publish(field<array<T, Pool>>& link, fresh_array<T, Pool>&& made,
               Site site = Site::current()) {
    if (!made) return;
    using values = detail::elements<T>;
    session_->publish(detail::access::offset(made.value_), detail::type_index<Pool, values>(),
                      made.value_.size() * sizeof(T), site);
    link.set(*this, made.value_, site);
    made.value_ = {};
  }
  /// Makes an object of what is fresh, linked by another fresh one that is published later in this
  /// transaction; else it leaks.
  template <class T, class Owner, class Member>
  void publish(fresh<Owner, Pool>& owner, Member Owner::*link, fresh<T, Pool>&& made,
               Site site = Site::current()) {
    if (!made || !owner) return;
    session_->publish(made.offset_, detail::type_index<Pool, T>(), sizeof(T), site);
    owner.set(link, detail::access::make<ptr<T, Pool>>(made.offset_));
    made.object_ = nullptr;
  }

  /// Frees an object. Unlink it first, in the same transaction.
  template <class T>
  void free(const ptr<T, Pool>& object, Site site = Site::current()) {
    session_->free(detail::access::offset(object), detail::type_index<Pool, T>(), sizeof(T), site);
  }
  template <class T>
  void free(const array<T, Pool>& object, Site site = Site::current()) {
    using values = detail::elements<T>;
    session_->free(detail::access::offset(object), detail::type_index<Pool, values>(),
                   object.size() * sizeof(T), site);
  }

  void hold(guard& on) { session_->hold(on); }
  /// Whether something could not be done: the transaction will end with that error.
  bool failed() const { return session_->failed(); }

private:
  template <class>
  friend class pool;
  friend struct detail::access;
  tx(Session& session, root_type& root) : session_(&session), root_(&root) {}
  Session* session_;
  root_type* root_;
};

} // namespace nearfar::persist
