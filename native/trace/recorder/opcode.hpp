// SPDX-License-Identifier: MIT (LICENSE in this folder)
// Memory accesses of an x86-64 instruction, decoded from its bytes.
//
// Plain          the most frequent instructions have one memory operand, whose direction and size
//                follow from the opcode: they are counted once per translation block.
// Source         Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, appendix
//                A.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::trace {

enum class Opcode : std::uint8_t {
  load,     ///< reads one operand, in pieces of at most `bytes`
  store,    ///< writes
  push,     ///< writes 8 bytes at the stack pointer
  scalar,   ///< QEMU reports each access of the program once
  stack,    ///< likewise, and it writes at the stack pointer
  wide,     ///< may access more than 8 bytes, which QEMU reports in pieces
  locked,   ///< atomic read-modify-write
  nt_store, ///< non-temporal store
  flush,    ///< clflush, clflushopt, clwb
};

struct Decoded {
  Opcode opcode = Opcode::scalar;
  std::uint8_t bytes = 8;     ///< of a load or store, or of its pieces
  bool floating = false;      ///< computes with floating point, in vectors or on the x87 stack
  bool pointer_chase = false; ///< a move that overwrites a register of its own address
};

namespace opcodes {

struct Prefixes {
  bool locked = false;
  bool operand_size = false; ///< 66
  bool repeat = false;       ///< f2 or f3
  bool f2 = false;
  bool rex_w = false;
};

inline bool is_prefix(std::uint8_t byte) {
  return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 ||
         byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 ||
         byte == 0x65;
}

inline bool in(unsigned value, unsigned low, unsigned high) {
  return value >= low && value <= high;
}

inline std::uint8_t word(const Prefixes& prefixes) {
  return prefixes.rex_w ? 8 : prefixes.operand_size ? 2 : 4;
}

/// In the map 0f: movntps, movntpd, movntq and movntdq.
inline bool is_non_temporal(std::uint8_t opcode) { return opcode == 0x2b || opcode == 0xe7; }

/// Moves and arithmetic of vectors with a memory operand; `wide` for all others.
inline Decoded of_vectors(std::uint8_t opcode, const Prefixes& prefixes, bool vex) {
  const bool scalar_float = prefixes.repeat && (in(opcode, 0x10, 0x11) || in(opcode, 0x51, 0x5f));
  const std::uint8_t piece = scalar_float && !prefixes.f2 ? 4 : 8;
  if (vex && prefixes.repeat) return {Opcode::wide}; // their prefixes are encoded elsewhere
  if (opcode == 0x11 || opcode == 0x29 || opcode == 0x7f) return {Opcode::store, piece};
  const bool loads = opcode == 0x10 || opcode == 0x28 || in(opcode, 0x2e, 0x2f) ||
                     in(opcode, 0x51, 0x6d) || opcode == 0x6f || opcode == 0x70 ||
                     in(opcode, 0x74, 0x76) || opcode == 0xc6 || in(opcode, 0xd8, 0xdf) ||
                     in(opcode, 0xe8, 0xef) || in(opcode, 0xf8, 0xfe);
  return loads ? Decoded{Opcode::load, piece} : Decoded{Opcode::wide};
}

inline Decoded of_second_map(const std::uint8_t* at, const std::uint8_t* end,
                             const Prefixes& prefixes) {
  const std::uint8_t opcode = *at;
  const bool memory = at + 1 < end && at[1] >> 6 != 3;
  const unsigned extension = at + 1 < end ? at[1] >> 3 & 7 : 0;
  if (is_non_temporal(opcode) || opcode == 0xc3) return {Opcode::nt_store};
  if (opcode == 0xae && memory) {
    if (extension == 7 || (prefixes.operand_size && extension == 6)) return {Opcode::flush};
    return {Opcode::wide}; // fxsave and similar
  }
  if (opcode == 0xa0 || opcode == 0xa8) return {Opcode::stack}; // push fs, gs
  if (memory && (opcode == 0xb6 || opcode == 0xbe)) return {Opcode::load, 1};
  if (memory && (opcode == 0xb7 || opcode == 0xbf)) return {Opcode::load, 2};
  if (memory && (opcode == 0xaf || in(opcode, 0x40, 0x4f))) return {Opcode::load, word(prefixes)};
  if (memory && (in(opcode, 0x10, 0x17) || in(opcode, 0x28, 0x2f) || in(opcode, 0x50, 0x7f) ||
                 opcode == 0xc6 || opcode >= 0xd0))
    return of_vectors(opcode, prefixes, false);
  const bool vectors = opcode == 0xc2 || opcode == 0xc7 || opcode == 0x38 || opcode == 0x3a ||
                       in(opcode, 0x10, 0x17) || in(opcode, 0x50, 0x7f) || opcode >= 0xd0;
  return {vectors ? Opcode::wide : Opcode::scalar};
}

/// With a memory operand.
inline Decoded of_operand(std::uint8_t opcode, unsigned extension, const Prefixes& prefixes) {
  const std::uint8_t wide = word(prefixes);
  const bool arithmetic = opcode < 0x40 && (opcode & 7) < 4;
  if (arithmetic && ((opcode & 2) != 0 || opcode >> 3 == 7)) // r, m; and both forms of cmp
    return {Opcode::load, (opcode & 1) != 0 ? wide : std::uint8_t{1}};
  switch (opcode) {
  case 0x8a:
  case 0x84: return {Opcode::load, 1};
  case 0x8b:
  case 0x85:
  case 0x69:
  case 0x6b: return {Opcode::load, wide};
  case 0x63: return {Opcode::load, 4};
  case 0x88:
  case 0xc6: return {Opcode::store, 1};
  case 0x89:
  case 0xc7: return {Opcode::store, wide};
  case 0x80: return {extension == 7 ? Opcode::load : Opcode::scalar, 1};
  case 0x81:
  case 0x83: return {extension == 7 ? Opcode::load : Opcode::scalar, wide};
  case 0xf6: return {extension <= 1 ? Opcode::load : Opcode::scalar, 1};
  case 0x86:
  case 0x87: return {Opcode::locked};
  case 0xff: return {extension == 2 || extension == 6 ? Opcode::stack : Opcode::scalar};
  default: return {};
  }
}

inline Decoded of_first_map(const std::uint8_t* at, const std::uint8_t* end,
                            const Prefixes& prefixes) {
  const std::uint8_t opcode = *at;
  if (in(opcode, 0x50, 0x57) || opcode == 0x68 || opcode == 0x6a || opcode == 0xe8 ||
      opcode == 0x9c)
    return {prefixes.operand_size ? Opcode::stack : Opcode::push};
  if ((in(opcode, 0x58, 0x5f) && !prefixes.operand_size) || opcode == 0xc3 || opcode == 0xc2 ||
      opcode == 0xc9)
    return {Opcode::load, 8};                        // pop, ret, leave
  if (in(opcode, 0xd8, 0xdf)) return {Opcode::wide}; // x87
  const bool has_operand = opcode < 0x40 ? (opcode & 7) < 4
                                         : opcode == 0x63 || opcode == 0x69 || opcode == 0x6b ||
                                               in(opcode, 0x80, 0x8b) || in(opcode, 0xc6, 0xc7) ||
                                               in(opcode, 0xf6, 0xf7) || opcode == 0xff;
  if (!has_operand || at + 1 >= end || at[1] >> 6 == 3 || prefixes.repeat) return {};
  return of_operand(opcode, at[1] >> 3 & 7, prefixes);
}

/// After c4 or c5: the lowest two bits of the last byte encode the prefix.
inline Decoded of_vex(const std::uint8_t* at, const std::uint8_t* end) {
  const std::size_t length = *at == 0xc5 ? 2 : 3;
  if (at + length + 1 >= end) return {Opcode::wide};
  const bool second_map = length == 2 || (at[1] & 31) == 1;
  const std::uint8_t opcode = at[length];
  if (!second_map || at[length + 1] >> 6 == 3) return {Opcode::wide};
  if (is_non_temporal(opcode)) return {Opcode::nt_store};
  Prefixes prefixes;
  prefixes.repeat = (at[length - 1] & 2) != 0;
  if (prefixes.repeat && (opcode == 0x6f || opcode == 0x7f)) prefixes.repeat = false; // vmovdqu
  return of_vectors(opcode, prefixes, true);
}

} // namespace opcodes

namespace opcodes {

/// Whether it computes with floating point. In the second map: square root to maximum, conversions.
inline bool floating(const std::uint8_t* at, const std::uint8_t* end) {
  if (at < end && in(*at, 0xd8, 0xdf)) return true;
  const std::size_t map = at < end && *at == 0x0f ? 1 : at < end && *at == 0xc5 ? 2 : 3;
  if (map == 3 && (at >= end || *at != 0xc4)) return false;
  if (at + map >= end) return false;
  if (map == 3 && (at[1] & 31) == 2) return in(at[map], 0x96, 0xbf); // fused multiply-add
  return in(at[map], 0x51, 0x53) || in(at[map], 0x58, 0x5f);
}

/// A move of 4 or 8 bytes into its own base or index register. `at` follows the REX prefix.
inline bool is_pointer_chase(const std::uint8_t* at, const std::uint8_t* end, unsigned rex) {
  if (at + 1 >= end || (*at != 0x8b && *at != 0x63) || at[1] >> 6 == 3) return false;
  const unsigned target = (at[1] >> 3 & 7u) | (rex & 4) << 1;
  const unsigned high_base = (rex & 1) << 3, high_index = (rex & 2) << 2;
  if ((at[1] & 7) != 4) { // without index; relative to the instruction pointer: without base
    const bool relative = at[1] >> 6 == 0 && (at[1] & 7) == 5;
    return !relative && target == ((at[1] & 7u) | high_base);
  }
  if (at + 2 >= end) return false;
  const unsigned base = (at[2] & 7u) | high_base, index = (at[2] >> 3 & 7u) | high_index;
  const bool has_base = at[1] >> 6 != 0 || (at[2] & 7) != 5;
  return (has_base && target == base) || (index != 4 && target == index);
}

} // namespace opcodes

inline Decoded decode(const void* code, std::size_t bytes) {
  const auto* at = static_cast<const std::uint8_t*>(code);
  const auto* end = at + bytes;
  opcodes::Prefixes prefixes;
  for (; at < end && opcodes::is_prefix(*at); ++at) {
    prefixes.locked |= *at == 0xf0;
    prefixes.operand_size |= *at == 0x66;
    prefixes.repeat |= *at == 0xf2 || *at == 0xf3;
    prefixes.f2 |= *at == 0xf2;
  }
  if (prefixes.locked) return {Opcode::locked};
  const unsigned rex = at < end && (*at & 0xf0) == 0x40 ? *at++ : 0u;
  prefixes.rex_w = (rex & 8) != 0;
  if (at >= end) return {};
  Decoded decoded;
  if (*at == 0x0f && at + 1 < end)
    decoded = opcodes::of_second_map(at + 1, end, prefixes);
  else if (*at == 0xc4 || *at == 0xc5)
    decoded = opcodes::of_vex(at, end);
  else
    decoded = opcodes::of_first_map(at, end, prefixes);
  decoded.floating = opcodes::floating(at, end);
  decoded.pointer_chase = opcodes::is_pointer_chase(at, end, rex);
  return decoded;
}

// A marker that the shim executes before a load whose operand is a report: a no-operation with a
// displacement that no compiler emits, nopl 0x4e464e4X(%rax).
enum class Mark : std::uint8_t {
  none = 0,
  allocated = 0x46, ///< the load is of an Allocation
  freed = 0x47,     ///< the load is of the block itself
};

inline Mark mark_of(const void* code, std::size_t bytes) {
  const auto* at = static_cast<const std::uint8_t*>(code);
  if (bytes != 7 || at[0] != 0x0f || at[1] != 0x1f || at[2] != 0x80 || at[4] != 0x4e ||
      at[5] != 0x46 || at[6] != 0x4e)
    return Mark::none;
  return at[3] == 0x46 ? Mark::allocated : at[3] == 0x47 ? Mark::freed : Mark::none;
}

} // namespace nearfar::trace
