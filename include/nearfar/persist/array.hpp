// Arrays of plain values in a pool, for kernels: access by a raw pointer.
//
// array<T, Pool>  16 bytes, kept in a field: a link and a count. raw() is a span on the memory
//                itself. Elements are not logged: a store to them is an ordinary store, durable
//                only after pool.persist(array) (flush and fence), and torn by a crash before.
//                Creating, replacing and freeing whole arrays is transactional.
//                Elements are initially 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nearfar/persist/field.hpp"

namespace nearfar::persist {

template <class T, class Pool>
class array {
  static_assert(detail::check_storable<T>());
  static_assert(detail::all_of<T>([]<class M>() {
                  return !detail::is_ptr<M> && !detail::is_array<M>;
                }),
                "array: elements are not logged, so they must not link objects");

public:
  using element_type = T;
  using pool_type = Pool;

  constexpr array() = default;

  std::size_t size() const { return count_; }
  explicit operator bool() const { return offset_ != 0; }
  std::span<T> raw() const {
    return {reinterpret_cast<T*>(detail::base_of<Pool> + offset_), count_};
  }
  T& operator[](std::size_t i) const { return raw()[i]; }
  friend bool operator==(const array&, const array&) = default;

private:
  friend struct detail::access;
  friend class tx<Pool>;
  std::uint64_t offset_ = 0;
  std::uint64_t count_ = 0;
};

} // namespace nearfar::persist
