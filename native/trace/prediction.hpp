// Prediction of the next record, which encoder and decoder have in common.
//
// Purpose        the contexts of docs/formats/trace.md: both sides keep the same ones, so that only
//                unexpected values are written.
// Thread safety  none.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/format.hpp"

namespace nearfar::trace {

// Bits of a record's head.
inline constexpr std::uint8_t kind_bits = 7;
inline constexpr std::uint8_t code_expected = 1 << 3;
inline constexpr std::uint8_t line_expected = 1 << 4;
inline constexpr std::uint8_t gap_expected = 1 << 5;
inline constexpr std::uint8_t object_expected = 1 << 6;
inline constexpr std::uint8_t has_extras = 1 << 7;

/// Last access of one instruction. Number 0 is code 0.
struct Context {
  std::uint64_t code = 0;
  std::uint64_t line = 0;
  std::uint64_t stride = 0;
  std::uint64_t gap = 0;
  std::uint32_t object = 0;
  std::uint32_t next = 0; ///< number of the context that came after this one

  void update(const Record& record, std::uint64_t gap_now) {
    stride = record.line - line;
    line = record.line;
    gap = gap_now;
    object = record.object;
  }
};

struct ThreadState {
  std::uint64_t instructions = 0;
  std::uint32_t context = 0; ///< of its last record that has a code
};

/// State of one block. Both sides call the same members in the same order.
class Prediction {
public:
  Prediction() { clear(); }
  void clear() {
    contexts_.assign(1, {});
    threads_.clear();
    thread = 0;
    last_new_code = 0;
  }

  ThreadState& of_thread(std::uint16_t number) {
    if (number >= threads_.size()) threads_.resize(std::size_t{number} + 1);
    return threads_[number];
  }
  std::uint32_t expected_context(const ThreadState& state, RecordKind kind) const {
    return kind == RecordKind::write_back ? 0 : contexts_[state.context].next;
  }
  Context& context(std::uint32_t number) { return contexts_[number]; }
  std::uint32_t contexts() const { return static_cast<std::uint32_t>(contexts_.size()); }
  std::uint32_t add(std::uint64_t code) {
    contexts_.push_back({});
    contexts_.back().code = code;
    last_new_code = code;
    return contexts() - 1;
  }
  /// After a record of this context.
  void follow(ThreadState& state, std::uint32_t number) {
    if (number == 0) return;
    contexts_[state.context].next = number;
    state.context = number;
  }

  std::uint16_t thread = 0;        ///< of the record before
  std::uint64_t last_new_code = 0; ///< of the block

private:
  std::vector<Context> contexts_;
  std::vector<ThreadState> threads_;
};

/// The expected line of a record whose object is known.
inline std::uint64_t expected_line(const Context& context, bool same_object, const Object& object,
                                   unsigned line_shift) {
  return same_object ? context.line + context.stride : object.address >> line_shift;
}
/// The line that an unexpected line is encoded relative to.
inline std::uint64_t line_base(const Context& context, bool same_object, const Object& object,
                               unsigned line_shift) {
  return same_object ? context.line : object.address >> line_shift;
}

} // namespace nearfar::trace
