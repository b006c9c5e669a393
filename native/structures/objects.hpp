// Policies for the objects of map_atomic, map_tx and map_rp: their memory, and the operations that
// change them. persistence_policy.hpp has those of the other structures.
//
// PoolObjects    libpmemobj's primitives: atomic allocation and lists, undo transactions, words
//                published at once.
// DramObjects    the volatile counterpart: a handle's offset is an address, nothing is logged and
//                nothing survives. Memory comes from the allocator of the other volatile
//                counterparts (node_heap.hpp), pieces over 1 MiB from the kernel. The destructor of
//                DramObjects frees all of it.
//
// Durability     PoolObjects: each call is atomic, and durable when it returns. Those of a
//                transaction are durable with its outermost end, those of a batch with its
//                publish().
// Errors         no_space if the pool is full. A failed call has no effect, also in a transaction,
//                which continues. If the body of a transaction fails, the transaction is undone,
//                and so is the transaction of the caller that contains it. In DRAM nothing is
//                undone: a body may make changes only when nothing can fail any more.
// Thread safety  PoolObjects: as libpmemobj, all calls on different objects. DramObjects: calls
//                that make changes exclude each other.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <libpmemobj.h>
#include <map>
#include <utility>

#include "base/result.hpp"
#include "os/pages.hpp"
#include "persist/pool.hpp"
#include "structures/node_heap.hpp"

namespace nearfar::structures {

/// A circular list in the form of libpmemobj's operations on lists.
struct ListHead {
  PMEMoid first;
  PMEMmutex lock;
};
struct ListLinks {
  PMEMoid next;
  PMEMoid previous;
};
static_assert(sizeof(ListHead) == 80);

/// Fills a new object, durably; `pool` is null in DRAM. The type of libpmemobj's constructors.
using Fill = int (*)(PMEMobjpool* pool, void* object, void* argument);

/// The object of a handle in a pool; null for a null handle.
template <class T>
T* direct(PMEMoid handle) {
  return static_cast<T*>(pmemobj_direct(handle));
}

/// The failure that libpmemobj reports in errno: no_space if the pool is full.
Error pool_error(const char* doing);

class PoolObjects {
public:
  static constexpr bool durable = true;

  explicit PoolObjects(PMEMobjpool* pool) : pool_(pool) {}
  explicit PoolObjects(const persist::Pool& pool) : pool_(pool.handle()) {}

  template <class T>
  static T* at(PMEMoid handle) {
    return direct<T>(handle);
  }
  void persist(const void* at, std::size_t bytes) const { pmemobj_persist(pool_, at, bytes); }

  /// Allocates memory and stores its handle at `where`, an address in the pool.
  Status allocate(PMEMoid& where, std::size_t bytes, std::uint64_t type, bool zeroed) const;

  /// A new entry at the front of a list; null if the pool is full. `links`: offset of its links.
  PMEMoid list_insert(ListHead& head, std::size_t links, std::size_t bytes, std::uint64_t type,
                      Fill fill, void* argument) const {
    return pmemobj_list_insert_new(pool_, links, &head, head.first, 1, bytes, type, fill, argument);
  }
  /// Removes an entry from its list and frees it.
  bool list_remove(ListHead& head, std::size_t links, PMEMoid entry, std::size_t) const {
    return pmemobj_list_remove(pool_, links, &head, entry, 1) == 0;
  }
  bool list_move(ListHead& from, ListHead& to, std::size_t links, PMEMoid entry) const {
    return pmemobj_list_move(pool_, links, &from, links, &to, to.first, 1, entry) == 0;
  }

  /// Runs body() -> Status in a transaction, nested if one is active.
  template <class Body>
  Status transact(const Body& body) const;
  /// Call it in a transaction before a field is overwritten.
  template <class T>
  static bool log(const T& field) {
    return pmemobj_tx_xadd_range_direct(&field, sizeof field, POBJ_XADD_NO_ABORT) == 0;
  }
  /// In a transaction; null if the pool is full. Contents are made durable with it if `flushed`.
  static PMEMoid tx_allocate(std::size_t bytes, std::uint64_t type, bool flushed = true) {
    return pmemobj_tx_xalloc(bytes, type,
                             POBJ_XALLOC_NO_ABORT | (flushed ? 0 : POBJ_XALLOC_NO_FLUSH));
  }
  static bool tx_free(PMEMoid object, std::size_t) {
    return pmemobj_tx_xfree(object, POBJ_XFREE_NO_ABORT) == 0;
  }

  /// Up to `capacity` changes that publish() makes at once.
  template <std::size_t capacity>
  class Batch {
  public:
    explicit Batch(const PoolObjects& objects) : pool_(objects.pool_) {}
    /// Memory that is allocated when the batch is published; null if the pool is full.
    PMEMoid reserve(std::size_t bytes, std::uint64_t type, bool zeroed) {
      const PMEMoid made =
          pmemobj_xreserve(pool_, &list_[count_], bytes, type, zeroed ? POBJ_XALLOC_ZERO : 0);
      if (made.off != 0) ++count_;
      return made;
    }
    void free(PMEMoid object, std::size_t) { pmemobj_defer_free(pool_, object, &list_[count_++]); }
    void set(std::uint64_t& word, std::uint64_t value) {
      pmemobj_set_value(pool_, &list_[count_++], &word, value);
    }
    Status publish() {
      if (pmemobj_publish(pool_, list_.data(), count_) != 0)
        return pool_error("publishing a change");
      return Done{};
    }
    void cancel() { pmemobj_cancel(pool_, list_.data(), count_); }

  private:
    PMEMobjpool* pool_;
    std::size_t count_ = 0;
    std::array<pobj_action, capacity> list_; // left unset: 38 KiB for a chain of moves
  };

private:
  PMEMobjpool* pool_;
};

class DramObjects {
public:
  static constexpr bool durable = false;

  DramObjects() : heap_(dram_, chunks_) {}
  DramObjects(const DramObjects&) = delete;
  DramObjects& operator=(const DramObjects&) = delete;

  template <class T>
  static T* at(PMEMoid handle) {
    return reinterpret_cast<T*>(handle.off);
  }
  void persist(const void*, std::size_t) const {}
  Status allocate(PMEMoid& where, std::size_t bytes, std::uint64_t type, bool zeroed);

  PMEMoid list_insert(ListHead& head, std::size_t links, std::size_t bytes, std::uint64_t type,
                      Fill fill, void* argument);
  bool list_remove(ListHead& head, std::size_t links, PMEMoid entry, std::size_t bytes);
  bool list_move(ListHead& from, ListHead& to, std::size_t links, PMEMoid entry);

  template <class Body>
  Status transact(const Body& body) {
    return body();
  }
  template <class T>
  static bool log(const T&) {
    return true;
  }
  PMEMoid tx_allocate(std::size_t bytes, std::uint64_t, bool = true) { return take(bytes, false); }
  bool tx_free(PMEMoid object, std::size_t bytes) {
    give_back(object, bytes);
    return true;
  }

  template <std::size_t capacity>
  class Batch {
  public:
    explicit Batch(DramObjects& objects) : objects_(objects) {}
    PMEMoid reserve(std::size_t bytes, std::uint64_t, bool zeroed) {
      return reserved_.add(objects_.take(bytes, zeroed), bytes);
    }
    void free(PMEMoid object, std::size_t bytes) { freed_.add(object, bytes); }
    void set(std::uint64_t& word, std::uint64_t value) { words_[count_++] = {&word, value}; }
    Status publish() {
      for (std::size_t i = 0; i < count_; ++i)
        *words_[i].at = words_[i].value;
      freed_.give_back(objects_);
      return Done{};
    }
    void cancel() { reserved_.give_back(objects_); }

  private:
    struct Word {
      std::uint64_t* at;
      std::uint64_t value;
    };
    struct Few { // a batch has two objects at most
      std::array<std::pair<PMEMoid, std::size_t>, 2> list;
      std::size_t count = 0;
      PMEMoid add(PMEMoid object, std::size_t bytes) {
        if (object.off != 0) list[count++] = {object, bytes};
        return object;
      }
      void give_back(DramObjects& objects) const {
        for (std::size_t i = 0; i < count; ++i)
          objects.give_back(list[i].first, list[i].second);
      }
    };
    DramObjects& objects_;
    Few reserved_;
    Few freed_;
    std::size_t count_ = 0;
    std::array<Word, capacity> words_; // left unset
  };

private:
  PMEMoid take(std::size_t bytes, bool zeroed);
  void give_back(PMEMoid object, std::size_t bytes);

  Dram dram_;
  ChunkTable chunks_{};
  NodeHeap<Dram> heap_;
  std::map<std::uint64_t, os::MappedRange> large_; ///< by address
};

template <class Body>
Status PoolObjects::transact(const Body& body) const {
  if (pmemobj_tx_begin(pool_, nullptr, TX_PARAM_NONE) != 0) {
    const Error failed = pool_error("beginning a transaction");
    (void)pmemobj_tx_end();
    return failed;
  }
  Status done = body();
  if (done)
    pmemobj_tx_commit();
  else
    pmemobj_tx_abort(ECANCELED);
  (void)pmemobj_tx_end();
  return done;
}

} // namespace nearfar::structures
