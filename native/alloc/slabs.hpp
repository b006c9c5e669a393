// Slabs of one size class of one tier, and the state of every block in them.
//
// A block has a byte of state, out of band: this is what tells a second free from a first, and an
// address inside a block from its start. A slab with free blocks is in the list of its class; slabs
// without any block in use stay there until the decay takes them.
//
// Thread safety  any thread; one lock a class. The state of a block that is handed out is written
//                by whoever owns the block, without the lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/counter.hpp"
#include "alloc/runs.hpp"

namespace nearfar::alloc {

/// What a block is; the order matters: everything up to `free` may be handed out.
enum State : std::int8_t {
  fresh = 0,       ///< free, and zero since the system gave its memory
  free_block = 1,  ///< free, contents unknown
  cached = 2,      ///< free, in the stack of a thread
  live = 3,        ///< handed out
  quarantined = 4, ///< freed, kept back
  purging = 5,     ///< free, its pages are being given back
  budgeted = 8,    ///< and up to 126: handed out, counted against budget number state - 8
  no_block = 127,  ///< behind the last one
};
inline bool is_live(std::int8_t state) {
  return state == live || (state >= budgeted && state < no_block);
}
using AtomicState = std::atomic<std::int8_t>;

struct Slab {
  Slab* next = nullptr;
  Slab* previous = nullptr;
  std::byte* start = nullptr;
  std::uint32_t first_span = 0;
  std::uint32_t blocks = 0;
  std::uint32_t free = 0;   ///< blocks that may be handed out
  std::uint32_t lowest = 0; ///< no block below this one is free
  std::uint16_t size_class = 0;
  std::uint8_t stamp = 0; ///< tick in which a block was last taken or given back
  bool listed = false;
  bool dirty = false; ///< has free blocks that were written
  bool held = false;  ///< in no list: purge() has it
  AtomicState* states() { return reinterpret_cast<AtomicState*>(this + 1); }
};
static_assert(sizeof(Slab) % 16 == 0);

/// A free block in a thread's stack, with its state.
struct Slot {
  std::byte* block;
  AtomicState* state;
};

class SlabClass {
public:
  /// Takes up to `wanted` blocks, lowest address last, and marks them `mark`. Returns how many;
  /// 0 if the tier is full.
  std::uint32_t take(Runs& runs, unsigned size_class, Slot* slots, std::uint32_t wanted, State mark,
                     bool& was_fresh);
  /// Gives blocks back that are in no other hands; `direct` ones come past the threads' stacks.
  void give_back(const Slot* slots, std::uint32_t count, std::uint8_t now, bool direct = false);

  /// Gives slabs without a block in use back to `runs`, and the free pages of others to the system;
  /// those that are not old_enough() only if `all`. Returns bytes of pages given to the system.
  std::size_t purge(Runs& runs, std::uint8_t now, bool all);
  /// Whether there is anything that purge() could give back some time.
  bool has_dirty() const { return dirty_.load(std::memory_order_relaxed); }

  /// Bytes in blocks that are free here.
  std::uint64_t free_bytes(unsigned size_class) const {
    return free_blocks_.get() * class_infos[size_class].bytes;
  }
  Counter allocations; ///< blocks handed out directly, past the threads' stacks
  Counter frees;
  /// Forgets all slabs: the memory under them is gone. The lock is left as it is.
  void reset();
  os::Lock& lock() { return lock_; }

private:
  Slab* add_slab(Runs& runs, unsigned size_class);
  std::uint32_t take_from(Slab* slab, Slot* slots, std::uint32_t wanted, State mark,
                          bool& fresh_all);
  void link_front(Slab* slab);
  void link_back(Slab* slab);
  void unlink(Slab* slab);
  Slab* take_empty(std::uint8_t now, bool all);
  void release_empty(Runs& runs, std::uint8_t now, bool all);
  Slab* hold_partial(Slab*& from, std::uint8_t now, bool all);
  std::size_t purge_held(Runs& runs, Slab* slab);

  os::Lock lock_;
  std::atomic<bool> dirty_{false};
  Slab* head_ = nullptr; ///< slabs with free blocks; those without a block in use at the end
  Slab* tail_ = nullptr;
  Counter free_blocks_;
};

/// The slab that a state belongs to.
Slab* slab_of(const std::byte* block);

} // namespace nearfar::alloc
