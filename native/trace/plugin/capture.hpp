// SPDX-License-Identifier: MIT (LICENSE in this folder)
// A thread's accesses through its first level of cache, into the ring.
//
// Cache          exact LRU, write-back, write-allocate: a set is its tags, the youngest first, so
//                that one comparison settles most accesses.
// Dependence     an address waits for a load if it lies up to a page behind a word of a line that
//                was missed recently; or if it is base + value * 2^n with the same base as before,
//                value being what the same instruction loaded last, or any other: unless it
//                advances by a stride, as numbers in a row do, by an instruction that could not
//                have loaded its own next address.
// Thread safety  a Core belongs to one thread.
#pragma once

#include <cstring>

#include "trace/plugin/allocation.hpp"
#include "trace/plugin/ring.hpp"

namespace nearfar::trace {

/// What is counted without a call for each access.
struct Clock {
  std::uint64_t instructions;
  std::uint64_t accesses[2]; ///< loads, stores
  std::uint64_t floating;    ///< instructions that compute with floating point
};

class Core {
public:
  /// A bit of `code`: the instruction overwrites a register of its address with what it loads.
  static constexpr std::uint64_t chases = std::uint64_t{1} << 62;
  static constexpr unsigned recent_lines = 8;

  /// A core that was zeroed is made ready; false if there is no memory.
  bool open(ring::Shared& shared) {
    ring_.shared = &shared;
    older_ways_ = shared.l1_ways - 1;
    set_mask_ = shared.l1_sets - 1;
    const std::size_t older = std::size_t{shared.l1_sets} * older_ways_ * sizeof(std::uint64_t);
    older_ = static_cast<std::uint64_t*>(std::malloc(older + 1));
    if (older_ == nullptr) return false;
    std::memset(older_, no_line_byte, older);
    std::memset(youngest_, no_line_byte, sizeof youngest_);
    return true;
  }

  /// Gives back what open() took; the recorders' own cores last as long as their process.
  void close() { std::free(older_); }

  /// A slot of its own, its clock being known: at the start, and in a forked child.
  void take_slot(std::uint32_t process) {
    thread_ = static_cast<std::uint16_t>(ring_.take_slot());
    slot = &ring_.slot();
    slot->process = process;
    slot->started = 1;
    recent_count_ = 0;
    origin_ = *clock;
    counted_[0] = counted_[1] = 0;
  }

  /// As long as there is no other thread and no other process under this recorder.
  void fills_ring_alone(bool alone) { ring_.alone = alone; }

  ring::Slot* slot;
  const Clock* clock;   ///< of this thread alone
  Clock ticks;          ///< what `clock` points to where threads run side by side
  bool counts_accesses; ///< in the place of instructions, which are not known

  void tell_counts() {
    for (unsigned i = 0; i < 2; ++i)
      slot->accesses[i] = clock->accesses[i] - origin_.accesses[i] + counted_[i];
    slot->instructions = counts_accesses ? slot->accesses[0] + slot->accesses[1]
                                         : clock->instructions - origin_.instructions;
    slot->floating = clock->floating - origin_.floating;
  }

  /// An access that the clock does not count.
  void count(bool store) { ++counted_[store]; }

  /// An access whose size is known when this is compiled, or else touch(store, …).
  template <bool store>
  [[gnu::always_inline]] void touch(std::uint64_t address, std::uint64_t bytes,
                                    std::uint64_t code) {
    const std::uint64_t line = address >> ring::line_shift;
    std::uint64_t& tag = youngest_[line & set_mask_];
    if ((tag ^ line << 1) > 1 || (address & 63) + bytes > 64) [[unlikely]] {
      touch_slowly(address, bytes, store, code);
      return;
    }
    if constexpr (store) tag |= 1;
  }
  void touch(std::uint64_t address, std::uint64_t bytes, bool store, std::uint64_t code) {
    if (is_youngest(address) && (address & 63) + bytes <= 64) [[likely]]
      youngest_[address >> ring::line_shift & set_mask_] |= store;
    else
      touch_slowly(address, bytes, store, code);
  }

  /// Bytes that go past the caches: one entry for each run of stores to a line.
  [[gnu::noinline]] void store_past(std::uint64_t address, std::uint64_t code) {
    const std::uint64_t line = address >> ring::line_shift;
    if (line == combining_) return;
    combining_ = line;
    drop(line);
    push(ring::What::nt_store, 0, address, code);
  }

  /// An address at the stack pointer: of a push or a call. Need be told of first touches alone.
  void pushed(std::uint64_t address) {
    if (address < stack_low_ || address > stack_high_) grow_stack(address);
  }
  /// The thread's stack is known from the beginning.
  void has_stack(std::uint64_t low, std::uint64_t high) {
    stack_low_ = low;
    stack_high_ = high - 1;
    tell(ring::What::stack, low, high, slot->instructions);
  }

  /// An ELF file was mapped.
  void tell_module(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset,
                   const char* path) {
    constexpr std::size_t most_words = 255 * 3;
    std::uint64_t words[most_words] = {};
    const std::size_t length = std::strlen(path) + 1;
    if (length > sizeof words) return;
    std::memcpy(words, path, length);
    tell_with(ring::What::module, address, bytes, offset, words,
              static_cast<unsigned>((length + 7) / 8));
  }

  /// Is the line of an address the youngest of its set: touched before, and not long ago?
  bool is_youngest(std::uint64_t address) const {
    const std::uint64_t line = address >> ring::line_shift;
    return (youngest_[line & set_mask_] ^ line << 1) <= 1;
  }

  /// A block was allocated or resized; `told` knows which sites need no telling.
  void tell_allocation(const Allocation& allocation, const CodeRanges& code, ToldSites& told) {
    tell_counts();
    if (allocation.before != 0) {
      tell_four(ring::What::reallocate, allocation.address, allocation.bytes, slot->instructions,
                allocation.before);
      return;
    }
    const Chain chain = chain_of(allocation, code);
    if (told.is_new(chain.key))
      tell_with(ring::What::site, chain.key, chain.length, 0, chain.codes, chain.length);
    tell_four(ring::What::allocate, allocation.address, allocation.bytes, slot->instructions,
              chain.key);
  }
  void tell_freed(std::uint64_t address) {
    tell_counts();
    tell(ring::What::free, address, 0, slot->instructions);
  }

  /// An event that is no access.
  void tell(ring::What what, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    ring_.push(what, 0, thread_, a, b, c);
  }
  /// Likewise, four numbers of 48 bits.
  void tell_four(ring::What what, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                 std::uint64_t fourth) {
    ring_.push_four(what, 0, thread_, a, b, c, fourth);
  }
  /// An event and what belongs to it, three words an entry, as entries that follow each other.
  void tell_with(ring::What what, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                 const std::uint64_t* words, unsigned count) {
    const unsigned further = (count + 2) / 3;
    std::uint64_t position;
    if (!ring_.reserve(1 + further, position)) return;
    ring_.publish(position, what, static_cast<std::uint8_t>(further), thread_, a, b, c);
    for (unsigned i = 0; i < further; ++i) {
      std::uint64_t part[3] = {};
      for (unsigned k = 0; k < 3 && 3 * i + k < count; ++k)
        part[k] = words[3 * i + k];
      ring_.publish(position + 1 + i, ring::What::more, 0, thread_, part[0], part[1], part[2]);
    }
    ring_.release();
  }

private:
  struct Recent {
    unsigned count;
    std::uint64_t words[8]; ///< of the line when it was missed: those that may be addresses
  };
  /// What an instruction did at its last miss.
  struct Habit {
    std::uint64_t code;
    std::uint64_t address;
    std::uint64_t stride;
    std::uint64_t value;
    std::uint64_t bases[4]; ///< one for each value that an address may be made of
    std::uint8_t shift;     ///< of the one that fitted last
    std::uint8_t trust;     ///< so often may they not fit before others are tried
  };
  static constexpr std::uint8_t most_trust = 4;
  static constexpr unsigned habits = 64;
  static constexpr std::uint64_t least_pointer = 1u << 16;
  static constexpr std::uint64_t most_pointer = std::uint64_t{1} << 47;
  static constexpr std::uint64_t reach = 4096;
  static_assert(recent_lines == 8); // bits of a byte

  /// Kept apart from what follows a miss, so that the way to the other ways is short.
  [[gnu::noinline]] void touch_slowly(std::uint64_t address, std::uint64_t bytes, bool store,
                                      std::uint64_t code) {
    const std::uint64_t line = address >> ring::line_shift;
    if ((address & 63) + bytes > 64) [[unlikely]] {
      touch_lines(address, bytes, store, code);
      return;
    }
    touch_line(line, address, store, code);
  }

  [[gnu::noinline]] void touch_lines(std::uint64_t address, std::uint64_t bytes, bool store,
                                     std::uint64_t code) {
    const std::uint64_t first = address >> ring::line_shift;
    const std::uint64_t last = (address + bytes - 1) >> ring::line_shift;
    touch_line(first, address, store, code);
    for (std::uint64_t line = first + 1; line <= last; ++line)
      touch_line(line, line << ring::line_shift, store, code);
  }

  [[gnu::always_inline]] void touch_line(std::uint64_t line, std::uint64_t address, bool store,
                                         std::uint64_t code) {
    std::uint64_t& youngest = youngest_[line & set_mask_];
    if ((youngest ^ line << 1) <= 1) {
      youngest |= store;
      return;
    }
    std::uint64_t* older = older_ + (line & set_mask_) * older_ways_;
    std::uint64_t carried = youngest;
    for (unsigned way = 0; way < older_ways_; ++way) { // each moves one place down as it is passed
      const std::uint64_t tag = older[way];
      older[way] = carried;
      carried = tag;
      if ((tag ^ line << 1) > 1) continue;
      youngest = tag | store;
      return;
    }
    youngest = line << 1 | store;
    missed(address, store, code, carried);
  }

  [[gnu::noinline]] void missed(std::uint64_t address, bool store, std::uint64_t code,
                                std::uint64_t victim) {
    ++slot->l1_misses;
    tell_counts();
    const std::uint8_t parent = depends_on(address, code, store);
    ring_.push_four(store ? ring::What::store : ring::What::load, parent, thread_, address, code,
                    slot->instructions, (victim & 1) != 0 ? victim >> 1 : 0);
    if (!store) remember(address >> ring::line_shift);
  }

  void push(ring::What what, std::uint8_t detail, std::uint64_t address, std::uint64_t code) {
    ring_.push(what, detail, thread_, address, code, slot->instructions);
  }

  /// The line's words as they are now: the access has just been made, so they can be read.
  void remember(std::uint64_t line) {
    const unsigned number = recent_count_++ % recent_lines;
    Recent& recent = recent_[number];
    for (unsigned i = 0; i < recent.count; ++i)
      near(recent.words[i]) &= static_cast<std::uint8_t>(~(1u << number));
    recent.count = 0;
    const auto* words = reinterpret_cast<const std::uint64_t*>(line << ring::line_shift);
    for (unsigned i = 0; i < 8; ++i) {
      recent.words[recent.count] = words[i];
      recent.count += words[i] - least_pointer < most_pointer - least_pointer;
    }
    for (unsigned i = 0; i < recent.count; ++i)
      near(recent.words[i]) |= static_cast<std::uint8_t>(1u << number);
  }
  /// Which recent lines may hold a word of the same page: a bit each.
  std::uint8_t& near(std::uint64_t address) { return near_[address / reach % sizeof near_]; }

  /// Which of the recent misses the address was made of: 1 the last, 0 none.
  std::uint8_t depends_on(std::uint64_t address, std::uint64_t code, bool store) {
    const bool habitual = follows_habit(address, code, store);
    const unsigned known = recent_count_ < recent_lines ? recent_count_ : recent_lines;
    const unsigned candidates = near(address) | near(address - reach);
    for (unsigned back = 1; back <= known && candidates != 0; ++back) {
      const unsigned number = (recent_count_ - back) % recent_lines;
      const Recent& recent = recent_[number];
      for (unsigned i = 0; i < recent.count && (candidates >> number & 1) != 0; ++i)
        if (address - recent.words[i] < reach) return static_cast<std::uint8_t>(back);
    }
    return habitual && known > 0 ? 1 : 0;
  }

  /// Is this base + value * 2^n, as the time before, by an instruction that keeps no stride?
  bool follows_habit(std::uint64_t address, std::uint64_t code, bool store) {
    Habit& habit = habits_[(code ^ code >> 6) % habits];
    const std::uint64_t stride = address - habit.address;
    const bool follows = habit.code == code && fits(habit, address) &&
                         (stride != habit.stride || (code & chases) != 0);
    if (habit.code != code) habit.trust = 0;
    habit.code = code;
    habit.address = address;
    habit.stride = stride;
    habit.value = value_at(address);
    if (!store) last_value_ = habit.value;
    return follows;
  }

  /// Made as before, of what this instruction loaded last, or of what any did.
  bool fits(Habit& habit, std::uint64_t address) const {
    constexpr std::uint64_t half = 0xffffffff;
    const std::uint64_t words[4] = {habit.value, habit.value & half, last_value_,
                                    last_value_ & half};
    for (unsigned i = 0; i < 4; ++i)
      if (address - (words[i] << habit.shift) == habit.bases[i]) {
        habit.trust = most_trust;
        return true;
      }
    // In between it may have loaded what was not missed, and is not seen.
    if (habit.trust > 0) {
      --habit.trust;
      return false;
    }
    habit.shift = static_cast<std::uint8_t>((habit.shift + 1) % 7); // the wrong scale never fits
    for (unsigned i = 0; i < 4; ++i)
      habit.bases[i] = address - (words[i] << habit.shift);
    return false;
  }

  /// Eight bytes, of which those beyond the line are taken for zero: there may be nothing.
  static std::uint64_t value_at(std::uint64_t address) {
    const std::uint64_t last_word = address | 56; // of the line, where the address is in it
    const std::uint64_t at = (address & 63) > 56 ? (last_word & ~std::uint64_t{7}) : address;
    std::uint64_t value;
    __builtin_memcpy(&value, reinterpret_cast<const void*>(at), sizeof value);
    return value >> 8 * (address - at);
  }

  void drop(std::uint64_t line) {
    std::uint64_t& youngest = youngest_[line & set_mask_];
    std::uint64_t* older = older_ + (line & set_mask_) * older_ways_;
    std::uint64_t* found = (youngest ^ line << 1) <= 1 ? &youngest : nullptr;
    for (unsigned way = 0; way < older_ways_ && found == nullptr; ++way)
      if ((older[way] ^ line << 1) <= 1) found = older + way;
    if (found == nullptr) return;
    if ((*found & 1) != 0) push(ring::What::write_back, 0, line << ring::line_shift, 0);
    *found = no_line; // its place is taken by age, as if it were still there
  }

  /// Bounds that grow by at least a page, so that this is rare.
  [[gnu::noinline]] void grow_stack(std::uint64_t address) {
    constexpr std::uint64_t page = 4096;
    constexpr std::uint64_t other_stack = std::uint64_t{8} << 20; // a stack of its own: a coroutine
    const bool far = stack_high_ == 0 || address + other_stack < stack_low_ ||
                     address > stack_high_ + other_stack;
    if (far || address < stack_low_) stack_low_ = address / page * page;
    if (far || address > stack_high_) stack_high_ = address / page * page + page - 1;
    if (far) stack_high_ += page;
    ring_.push(ring::What::stack, 0, thread_, stack_low_, stack_high_ + 1, slot->instructions);
  }

  static constexpr int no_line_byte = 0xfe;
  static constexpr std::uint64_t no_line = 0xfefefefefefefefe; ///< clean

  // Tags: a line, shifted left, and whether it is dirty in the lowest bit.
  std::uint64_t youngest_[ring::most_sets];
  std::uint64_t set_mask_;
  std::uint64_t* older_; ///< the other ways of each set, by age
  unsigned older_ways_;
  ring::Producer ring_;
  std::uint64_t counted_[2];
  std::uint16_t thread_;
  Clock origin_; ///< what the clock showed when the thread began
  std::uint64_t combining_;
  std::uint64_t stack_low_;
  std::uint64_t stack_high_;
  unsigned recent_count_;
  Recent recent_[recent_lines];
  std::uint8_t near_[256];
  Habit habits_[habits];
  std::uint64_t last_value_; ///< that a load which missed brought
};

} // namespace nearfar::trace
