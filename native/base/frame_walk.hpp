// SPDX-License-Identifier: MIT (native/trace/recorder/LICENSE): the emulator's plug-in includes this.
// Return addresses along frame pointers, on any stack: a thread's own, a coroutine's, a signal
// handler's.
//
// Frames         a function that keeps no frame pointer ends the chain or hides its caller, and a
//                register used for something else looks like a frame pointer. A value counts only
//                if it is aligned, above the frame below it, and not far from it; what it points to
//                is not trusted to be mapped.
// Thread safety  any thread.
#pragma once

#include <cstdint>

namespace nearfar {

/// The hash of a chain of return addresses with one more, innermost first.
inline std::uint64_t hash_with(std::uint64_t hash, std::uintptr_t caller) {
  hash = (hash ^ caller) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

/// Whether the instruction before `address` is a call; 7 bytes before it must be readable.
inline bool follows_call_instruction(std::uintptr_t address) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(address);
  if (at[-5] == 0xe8) return true;         // call rel32
  for (int bytes = 2; bytes <= 7; ++bytes) // call r/m64
    if (at[-bytes] == 0xff && (at[1 - bytes] >> 3 & 7) == 2) return true;
  return false;
}

/// Stack frame of a function with a frame pointer (System V ABI): the words at its address.
struct FrameRecord {
  std::uintptr_t outer;  ///< address of its caller's frame
  std::uintptr_t caller; ///< return address
};

/// Calls visit(return address) for the frames around the one at `frame`, which must be readable,
/// its caller's caller first, until visit returns false or the chain ends. Records in a page that
/// held one before are read directly, others by try_read(address, record), which returns false
/// where nothing can be read.
template <class TryRead, class Visit>
[[gnu::always_inline]] inline void walk_frames(std::uintptr_t frame, const TryRead& try_read,
                                               const Visit& visit) {
  constexpr std::uintptr_t farthest = 1u << 20; // of a frame from the one below
  constexpr std::uintptr_t page = 4096;
  FrameRecord record{*reinterpret_cast<const std::uintptr_t*>(frame), 0};
  for (std::uintptr_t at = frame;;) {
    const std::uintptr_t outer = record.outer;
    if (outer <= at || outer - at > farthest || outer % sizeof outer != 0) return;
    if ((outer + sizeof record - 1) / page == at / page)
      record = *reinterpret_cast<const FrameRecord*>(outer);
    else if (!try_read(outer, record))
      return;
    if (!visit(record.caller)) return;
    at = outer;
  }
}

} // namespace nearfar
