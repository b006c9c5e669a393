// The memory access that a time sample waited for, from the code around its instruction pointer.
//
// Skid           a CPU takes a timer's interrupt when the oldest instruction retires, so that the
//                time for which a load waits is attributed to the instruction after it. A string
//                instruction can be interrupted itself. A comparison with memory retires together
//                with the jump after it: its time is also attributed to the target of the jump.
// Reverse        x86 code cannot be decoded backward; it is decoded from several places before the
//                sample, which agree after a few instructions.
// Limits         one access for each place in the code, found without the program's history.
// Thread safety  none of its own: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace nearfar::sample {

/// The general registers of a sample, in the order of the processor: RAX, RCX, RDX, RBX, RSP, RBP,
/// RSI, RDI, R8 to R15.
inline constexpr unsigned registers = 16;
using Registers = std::uint64_t[registers];

/// An access, as its instruction encodes it.
struct StalledAccess {
  static constexpr std::int8_t none = -1;

  std::int64_t instruction = 0; ///< bytes from the sample's instruction pointer
  std::int8_t base = none;      ///< number of a register
  std::int8_t index = none;
  std::uint32_t scale = 0;       ///< of the index; for a lost one, also what code multiplies it by
  std::uint8_t bytes = 0;        ///< size of the access
  std::int64_t displacement = 0; ///< from the sample's instruction pointer if is_relative
  bool is_relative = false;      ///< to the instruction pointer
  bool is_load = false;          ///< otherwise only a store
  bool is_store = false;
  bool is_string = false;       ///< a repeated string instruction
  bool follows_pointer = false; ///< the base was loaded from memory shortly before
  bool lost_index = false;      ///< the load overwrote its index

  /// The address. If the load overwrote a register of it, the loaded value is used, a pointer or an
  /// index that the program uses next. Empty if no register has either.
  std::optional<std::uint64_t> address(std::uint64_t pointer, const Registers& values) const;
  /// The same without the index: the beginning of the array.
  std::optional<std::uint64_t> array(std::uint64_t pointer, const Registers& values) const;
};

/// Bytes of code before and after the instruction pointer that are used.
inline constexpr unsigned code_before = 256;
inline constexpr unsigned code_after = 256;

/// The access that a sample at `code[at]` waited for. Empty if there is none near it: the time was
/// spent in computation, or on the stack's implicit accesses.
std::optional<StalledAccess> stalled_access(std::span<const std::uint8_t> code, std::size_t at);

} // namespace nearfar::sample
