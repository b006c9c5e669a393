// SPDX-License-Identifier: MIT (LICENSE in this folder)
// Writes the events of one thread into the ring.
//
// Thread safety  one thread.
#pragma once

#include <cstdint>
#include <cstring>

#include "trace/recorder/ring.hpp"

namespace nearfar::trace {

/// Zeroed memory, on which open() and take_slot() are called.
class EventEncoder {
public:
  void open(ring::Shared& shared) { producer_.shared = &shared; }

  /// A slot of the thread's own: at its start, and in a forked child.
  ring::ThreadSlot& take_slot() {
    thread_ = static_cast<std::uint16_t>(producer_.take_slot());
    return producer_.slot();
  }

  /// No other thread and no other process fills the ring.
  void set_alone(bool alone) { producer_.alone = alone; }

  void emit(ring::EventKind kind, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    producer_.push(kind, 0, thread_, a, b, c);
  }
  /// An event with four numbers of 48 bits.
  void emit_wide(ring::EventKind kind, std::uint8_t detail, std::uint64_t a, std::uint64_t b,
                 std::uint64_t c, std::uint64_t fourth) {
    producer_.push_wide(kind, detail, thread_, a, b, c, fourth);
  }
  /// An event followed by `count` words, in entries of three words each.
  void emit_with_words(ring::EventKind kind, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                       const std::uint64_t* words, unsigned count) {
    const unsigned further = (count + 2) / 3;
    std::uint64_t position;
    if (!producer_.reserve(1 + further, position)) return;
    producer_.publish(position, kind, static_cast<std::uint8_t>(further), thread_, a, b, c);
    for (unsigned i = 0; i < further; ++i) {
      std::uint64_t part[3] = {};
      for (unsigned k = 0; k < 3 && 3 * i + k < count; ++k)
        part[k] = words[3 * i + k];
      producer_.publish(position + 1 + i, ring::EventKind::more, 0, thread_, part[0], part[1],
                        part[2]);
    }
    producer_.release();
  }

  /// An ELF file was mapped. Paths that are too long are left out.
  void emit_module(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset,
                   const char* path) {
    constexpr std::size_t max_words = 255 * 3;
    std::uint64_t words[max_words] = {};
    const std::size_t length = std::strlen(path) + 1;
    if (length > sizeof words) return;
    std::memcpy(words, path, length);
    emit_with_words(ring::EventKind::module, address, bytes, offset, words,
                    static_cast<unsigned>((length + 7) / 8));
  }

private:
  ring::Producer producer_;
  std::uint16_t thread_;
};

} // namespace nearfar::trace
