// SPDX-License-Identifier: MIT (LICENSE in this folder)
// Differences between the versions of QEMU's plug-in interface: the bytes of an instruction, and
// counters that translated code increments without a call.
#pragma once

#include "trace/recorder/api.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nearfar::trace {

/// The bytes of an instruction; those of x86-64 have at most 15.
struct CodeBytes {
  explicit CodeBytes(const qemu_plugin_insn* insn) : size(qemu_plugin_insn_size(insn)) {
    if (size > sizeof data) size = sizeof data;
#if NEARFAR_QEMU_API == 1
    std::memcpy(data, qemu_plugin_insn_data(insn), size);
#else
    qemu_plugin_insn_data(insn, data, size);
#endif
  }

  std::uint8_t data[16];
  std::size_t size;
};

/// Counters of the first CPU in a structure of 64-bit integers, all zero at first. Only valid while
/// the program has one thread.
template <class Counters>
class InlineCounters {
public:
  /// Called by the first thread, before any code is translated.
  void open() {
#if NEARFAR_QEMU_API == 1
    static Counters storage;
    counters_ = &storage;
#else
    counters_ = static_cast<Counters*>(qemu_plugin_scoreboard_find(board_, 0));
#endif
  }
  /// Called when the plug-in is installed.
  void create() {
#if NEARFAR_QEMU_API != 1
    board_ = qemu_plugin_scoreboard_new(sizeof(Counters));
#endif
  }

  Counters* operator->() const { return counters_; }

  /// Increments a counter, a member of the structure, whenever the code is executed.
  void count(qemu_plugin_tb* block, std::uint64_t& counter, std::uint64_t value) {
#if NEARFAR_QEMU_API == 1
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &counter, value);
#else
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(block, QEMU_PLUGIN_INLINE_ADD_U64,
                                                      entry_of(counter), value);
#endif
  }
  void count(qemu_plugin_insn* insn, std::uint64_t& counter, std::uint64_t value) {
#if NEARFAR_QEMU_API == 1
    qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &counter, value);
#else
    qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64,
                                                        entry_of(counter), value);
#endif
  }

private:
#if NEARFAR_QEMU_API != 1
  qemu_plugin_u64 entry_of(const std::uint64_t& counter) const {
    return {board_, static_cast<std::size_t>(reinterpret_cast<const char*>(&counter) -
                                             reinterpret_cast<const char*>(counters_))};
  }
  qemu_plugin_scoreboard* board_ = nullptr;
#endif
  Counters* counters_ = nullptr;
};

} // namespace nearfar::trace
