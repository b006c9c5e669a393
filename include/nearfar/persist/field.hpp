// Members of persistent structures, and what links them.
//
// ptr<T, Pool>   8 bytes: an offset in the pool of type Pool, typed. Null, comparable,
//                no arithmetic, no casts; of another pool it is another type. Dereferencing costs
//                an addition; it is for threads that hold a guard (a reading or a transaction).
// field<T>       reads are `const T&` and show a transaction its own writes; a write is
//                `object->member.set(tx, value)`. Assignment and address-of are deleted. A
//                reference that a read gave inside a transaction ends with it.
// secret_field<T>  the same for what must not linger: reading wants reveal(), and the bytes are
//                overwritten, durably, when the object is freed, in any pool.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nearfar/persist/storable.hpp"
#include "persist/session.hpp"

namespace nearfar::persist {

using storelog::Site;

template <class Pool>
class tx;
template <class Pool>
class reader;
template <class T, class Pool>
class fresh;

namespace detail {

/// Where the pool of a type is mapped, while it is open.
template <class Pool>
inline std::byte* base_of = nullptr;

struct access; // makes pointers from offsets

/// Whether all pointers in a value belong to a pool.
template <class T, class Pool>
consteval bool belongs_to() {
  return all_of<T>([]<class M>() {
    if constexpr (is_ptr<M> || is_array<M>)
      return std::is_same_v<typename M::pool_type, Pool>;
    else
      return true;
  });
}

} // namespace detail

template <class T, class Pool>
class ptr {
public:
  using element_type = T;
  using pool_type = Pool;

  constexpr ptr() = default;
  constexpr ptr(std::nullptr_t) {}

  T* operator->() const { return address(); }
  T& operator*() const { return *address(); }
  explicit operator bool() const { return offset_ != 0; }
  friend bool operator==(const ptr&, const ptr&) = default;

private:
  friend struct detail::access;
  T* address() const {
    static_assert(detail::check_persistent<T>());
    return reinterpret_cast<T*>(detail::base_of<Pool> + offset_);
  }
  std::uint64_t offset_ = 0;
};

struct detail::access {
  template <class P>
  static P make(std::uint64_t offset) {
    P pointer;
    pointer.offset_ = offset;
    return pointer;
  }
  template <class P>
  static std::uint64_t offset(const P& pointer) {
    return pointer.offset_;
  }
  template <class F>
  static auto& value(F& of) {
    return of.value_;
  }
  template <class Tx>
  static Session& session(Tx& transaction) {
    return *transaction.session_;
  }
  /// What a body is called with, for who brings a store of its own instead of a pool.
  template <class Pool>
  static tx<Pool> transaction(Session& session, typename Pool::root& root) {
    return tx<Pool>(session, root);
  }
};

namespace detail {

/// What field and secret_field have in common.
template <class T>
class cell {
  static_assert(check_storable<T>());

public:
  constexpr cell() = default;
  constexpr cell(const T& value) : value_(value) {}
  cell(const cell&) = default;
  cell& operator=(const cell&) = delete; // write it with set(tx, value): a store must reach the log
  template <class Other>
  cell& operator=(Other&&) = delete; // write it with set(tx, value): a store must reach the log
  void operator&() const = delete;   // a plain pointer would let stores escape the log

  /// Changes the field with a transaction: seen there at once, by others and after a crash when it
  /// has committed.
  template <class Pool>
  void set(tx<Pool>& transaction, const T& value, Site site = Site::current()) {
    static_assert(belongs_to<T, Pool>(), "set: the value points into a pool of another type");
    access::session(transaction)
        .write(std::addressof(value_), std::addressof(value), sizeof(T), site);
  }
  template <class Pool>
  void set(const reader<Pool>&, const T&) = delete; // readings share: begin a transaction
  void set(const T&) = delete;                      // needs the transaction: set(tx, value)

protected:
  const T& read() const {
    if (const Session* s = current_session; s != nullptr) [[unlikely]]
      if (const std::byte* own = s->find(std::addressof(value_)); own != nullptr)
        return *reinterpret_cast<const T*>(own);
    return value_;
  }

private:
  friend struct access;
  T value_{};
};

} // namespace detail

template <class T>
class field : public detail::cell<T> {
public:
  using value_type = T;
  using detail::cell<T>::cell;
  using detail::cell<T>::operator=;
  field(const field&) = default;
  field&
  operator=(const field&) = delete; // write it with set(tx, value): a store must reach the log

  const T& get() const { return this->read(); }
  operator const T&() const { return this->read(); }
  const T& operator->() const
    requires detail::is_ptr<T>
  {
    return this->read();
  }
  explicit operator bool() const
    requires detail::is_ptr<T>
  {
    return static_cast<bool>(this->read());
  }
  friend bool operator==(const field& a, const T& b) { return a.get() == b; }
};

template <class T>
class secret_field : public detail::cell<T> {
public:
  using value_type = T;
  using detail::cell<T>::cell;
  using detail::cell<T>::operator=;
  secret_field(const secret_field&) = default;
  secret_field& operator=(const secret_field&) = delete; // write it with set(tx, value)

  /// A copy in volatile memory is the caller's to overwrite.
  const T& reveal() const { return this->read(); }
};

} // namespace nearfar::persist
