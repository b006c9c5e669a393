// What a judge knows of the lines of a pool, in memory that is given to it.
//
// Memory         a state for each line of which something is known; a line that is forgotten gives
//                its memory to the next, so that it stays small and in the processor's caches. The
//                rest stays sparse.
// Thread safety  none: callers exclude each other
// Freestanding   allocates nothing and throws nothing: it runs inside other programs
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "os/address_space.hpp"
#include "storelog/event.hpp"

namespace nearfar::crash {

/// Words of a line, a bit for each. Durability is known by words of four bytes.
using Words = std::uint16_t;
/// Bytes of a line, a bit for each.
using Bytes = std::uint64_t;

inline constexpr std::uint64_t word_bytes = 4;
inline constexpr unsigned words_of_line = storelog::line_bytes / word_bytes;
inline constexpr Words all_words = 0xFFFF;

/// Calls visit(number) for each word.
template <class Visit>
void for_each_word(Words words, const Visit& visit) {
  for (unsigned left = words; left != 0; left &= left - 1)
    visit(static_cast<unsigned>(std::countr_zero(left)));
}

/// A part of a line.
struct LinePart {
  std::uint64_t line;
  Words words; ///< that it touches
  Bytes bytes;

  /// The part of [address, end) in the line of `address`.
  static LinePart first_of(std::uint64_t address, std::uint64_t end) {
    const std::uint64_t line = address / storelog::line_bytes;
    const std::uint64_t start = line * storelog::line_bytes;
    const std::uint64_t from = address - start, to = std::min(end - start, storelog::line_bytes);
    const Bytes below = to == storelog::line_bytes ? ~Bytes{0} : (Bytes{1} << to) - 1;
    const unsigned words = (1u << (to + word_bytes - 1) / word_bytes) - (1u << from / word_bytes);
    return {line, static_cast<Words>(words), below >> from << from};
  }
};

/// The bytes of whole words.
inline Bytes bytes_of(Words words) {
  Bytes bytes = 0;
  for_each_word(words, [&](unsigned word) { bytes |= Bytes{0xF} << (word * word_bytes); });
  return bytes;
}

/// The words that some bytes lie in.
inline Words words_of(Bytes bytes) {
  Words words = 0;
  for (unsigned word = 0; word < words_of_line; ++word)
    if ((bytes >> (word * word_bytes) & 0xF) != 0) words = static_cast<Words>(words | 1u << word);
  return words;
}

struct LineState {
  Words dirty, awaiting; ///< stored and not flushed; flushed and not fenced. The others are durable
  Words freed;
  Words reported; ///< as not logged, so that they are not reported as not flushed, too
  Words is_new;   ///< allocated, and a transaction may store to it unlogged
  Words never_durable;
  Words unchanged;               ///< stored, but what was durable is what the store left
  Words flushed_by_other;        ///< by another thread than that of the store
  std::uint32_t newest_awaiting; ///< the latest sequence of words that await a fence
  std::uint32_t transaction;     ///< that logged or flushed some of its bytes
  std::uint32_t next;            ///< state with what another transaction has logged or flushed
  Bytes logged, flushed;         ///< by the transaction
  // Of words that are not durable or freed:
  std::uint32_t site[words_of_line];     ///< of the last store; of the call that freed it
  std::uint32_t sequence[words_of_line]; ///< of that store, or of the flush that awaits a fence
  std::uint16_t thread[words_of_line];   ///< of the last store; also of those flushed by another

  void set_store(Words words, std::uint32_t by_site, std::uint32_t number, std::uint16_t by) {
    const auto set = [&](unsigned word) {
      site[word] = by_site;
      sequence[word] = number;
      thread[word] = by;
    };
    if (words != all_words) return for_each_word(words, set);
    for (unsigned word = 0; word < words_of_line; ++word) // the compiler makes vectors of it
      set(word);
  }
};

class LineStates {
public:
  /// Address space for a pool of this size.
  static std::size_t memory_bytes(std::uint64_t pool_bytes);
  /// `memory` has that many bytes: zeros, or what such an object left there.
  LineStates(void* memory, std::uint64_t pool_bytes);

  /// Null if nothing is known of the line.
  LineState* find(std::uint64_t line) const {
    const std::uint32_t number = states_of_lines_[line];
    return number == 0 ? nullptr : &states_[number];
  }
  /// The state of a line, of which something is known from now on.
  LineState& add(std::uint64_t line) {
    std::uint32_t& number = states_of_lines_[line];
    if (number == 0) {
      page_has_states_[line * storelog::line_bytes / os::page_bytes] = true;
      number = new_state();
    }
    return states_[number];
  }
  void forget(std::uint64_t line);
  void forget_all();

  /// What a transaction has logged and flushed of a line; null if nothing.
  LineState* find_transaction(LineState& line, std::uint32_t transaction) const {
    LineState* state = &line;
    while (state->transaction != transaction && state->next != 0)
      state = &states_[state->next];
    return state->transaction == transaction ? state : nullptr;
  }
  /// Calls visit(state) for each transaction that has logged or flushed bytes of a line.
  template <class Visit>
  void for_transactions(const LineState& line, const Visit& visit) const {
    visit(line);
    for (std::uint32_t i = line.next; i != 0; i = states_[i].next)
      visit(states_[i]);
  }
  /// Takes the place of a transaction of which is_active(transaction) is false, if there is one.
  template <class IsActive>
  LineState& add_transaction(LineState& line, std::uint32_t transaction,
                             const IsActive& is_active) {
    LineState* state = &line;
    while (state->transaction != transaction && (state->logged | state->flushed) != 0 &&
           is_active(state->transaction)) {
      if (state->next == 0) state->next = new_state();
      if (state->next == 0) break; // no room: the last one is lost
      state = &states_[state->next];
    }
    if (state->transaction != transaction) state->logged = state->flushed = 0;
    state->transaction = transaction;
    return *state;
  }

  /// Calls visit(state, part) for each line of a range; something is known of all of them then.
  template <class Visit>
  void for_lines(std::uint64_t address, std::uint64_t bytes, const Visit& visit) {
    const std::uint64_t end = address + bytes;
    while (address < end) {
      const LinePart part = LinePart::first_of(address, end);
      visit(add(part.line), part);
      address = (part.line + 1) * storelog::line_bytes;
    }
  }
  /// Calls visit(state, part) for each line of a range of which something is known, by address.
  template <class Visit>
  void for_known_lines(std::uint64_t address, std::uint64_t bytes, const Visit& visit) const {
    const std::uint64_t end = std::min(address + bytes, pool_bytes_);
    while (address < end) {
      if (!page_has_states_[address / os::page_bytes]) {
        address = (address / os::page_bytes + 1) * os::page_bytes;
        continue;
      }
      const LinePart part = LinePart::first_of(address, end);
      if (LineState* const state = find(part.line); state != nullptr) visit(*state, part);
      address = (part.line + 1) * storelog::line_bytes;
    }
  }

private:
  struct Head {
    std::uint32_t states; ///< the first is not used
    std::uint32_t unused; ///< a list
  };

  std::uint32_t new_state(); ///< 0 if there is no room, which a line without a state always has

  std::uint64_t pool_bytes_;
  Head* head_;
  bool* page_has_states_; ///< or has had some
  std::uint32_t* states_of_lines_;
  LineState* states_;
};

} // namespace nearfar::crash
