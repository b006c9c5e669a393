// Members of persistent structures, and persistent pointers.
//
// ptr<T, Pool>   8 bytes: an offset in the pool of type Pool, typed. Nullable and
//                comparable; no arithmetic, no casts; a pointer of another pool has another type.
//                Dereferencing costs an addition and requires a guard (a read or a transaction).
// field<T>       reads are `const T&` and show a transaction its own writes; a write is
//                `object->member.set(tx, value)`. Assignment and address-of are deleted. A
//                reference that a read returned inside a transaction is invalid after it.
// secret_field<T>  the same for secrets: reading requires reveal(), and the bytes are overwritten,
//                durably, when the object is freed, in any pool.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nearfar/persist/storable.hpp"
#include "persist/transaction.hpp"

namespace nearfar::persist {

using storelog::Site;

template <class Pool>
class tx;
template <class Pool>
class reader;
template <class T, class Pool>
class fresh;

namespace detail {

/// Address of the pool of a type, while it is open.
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
  static Transaction& untyped(Tx& transaction) {
    return *transaction.untyped_;
  }
  /// The argument of a body, for a caller with a store of its own instead of a pool.
  template <class Pool>
  static tx<Pool> transaction(Transaction& untyped, typename Pool::root& root) {
    return tx<Pool>(untyped, root);
  }
};

namespace detail {

/// Common part of field and secret_field.
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

  /// Changes the field in a transaction. The transaction sees the change at once; other threads
  /// and a restart after a crash see it after the commit.
  template <class Pool>
  void set(tx<Pool>& transaction, const T& value, Site site = Site::current()) {
    static_assert(belongs_to<T, Pool>(), "set: the value points into a pool of another type");
    access::untyped(transaction)
        .write(std::addressof(value_), std::addressof(value), sizeof(T), site);
  }
  template <class Pool>
  void set(const reader<Pool>&, const T&) = delete; // readings share: begin a transaction
  void set(const T&) = delete;                      // needs the transaction: set(tx, value)

protected:
  const T& read() const {
    if (const Transaction* s = current_transaction; s != nullptr) [[unlikely]]
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
  /// A number of another type: without this, the comparison above and the built-in one are
  /// ambiguous.
  template <class Number>
    requires std::is_arithmetic_v<T> && std::is_arithmetic_v<Number>
  friend bool operator==(const field& a, const Number& b) {
    using Both = std::common_type_t<T, Number>; // as the built-in comparison converts
    return static_cast<Both>(a.get()) == static_cast<Both>(b);
  }
  friend bool operator==(const field& a, const field& b) { return a.get() == b.get(); }
};

template <class T>
class secret_field : public detail::cell<T> {
public:
  using value_type = T;
  using detail::cell<T>::cell;
  using detail::cell<T>::operator=;
  secret_field(const secret_field&) = default;
  secret_field& operator=(const secret_field&) = delete; // write it with set(tx, value)

  /// The caller overwrites the copy in volatile memory.
  const T& reveal() const { return this->read(); }
};

} // namespace nearfar::persist
