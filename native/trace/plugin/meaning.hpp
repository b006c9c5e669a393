// SPDX-License-Identifier: MIT (LICENSE in this folder)
// What the emulator says of an access in a word of its own: load or store, and how wide.
//
// Thread safety  any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "trace/plugin/api.hpp"

namespace nearfar::trace {

/// What QEMU's description of an access says, kept by description: there are few.
struct Meaning {
  bool store;
  unsigned bytes;
};
inline std::atomic<std::uint64_t>& meaning_place(qemu_plugin_meminfo_t info) {
  static std::atomic<std::uint64_t> meanings[256];
  return meanings[(info >> 4 ^ info >> 12) & 255];
}
/// False where it has to be learned first.
inline bool is_known(qemu_plugin_meminfo_t info, Meaning& meaning) {
  const std::uint64_t entry = meaning_place(info).load(std::memory_order_relaxed);
  meaning = {(entry & 1u << 8) != 0, static_cast<unsigned>(entry & 0xff)};
  return entry >> 32 == info && meaning.bytes != 0;
}
/// Asks the emulator, and calls back again. Out of the way, so that callbacks keep no registers.
template <qemu_plugin_vcpu_mem_cb_t callback>
[[gnu::noinline, gnu::cold]] void learn(unsigned vcpu, qemu_plugin_meminfo_t info,
                                        std::uint64_t address, void* code) {
  meaning_place(info).store(std::uint64_t{info} << 32 |
                                (qemu_plugin_mem_is_store(info) ? 1u << 8 : 0u) |
                                1u << qemu_plugin_mem_size_shift(info),
                            std::memory_order_relaxed);
  callback(vcpu, info, address, code);
}

} // namespace nearfar::trace
