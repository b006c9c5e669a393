// SPDX-License-Identifier: MIT (LICENSE in this folder)
// Kind and size of an access, from QEMU's description of it.
//
// Thread safety  any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "trace/recorder/api.hpp"

namespace nearfar::trace {

struct AccessType {
  bool store;
  unsigned bytes;
};
/// A cache of the answers: there are few descriptions.
inline std::atomic<std::uint64_t>& cached_type(qemu_plugin_meminfo_t info) {
  static std::atomic<std::uint64_t> types[256];
  return types[(info >> 4 ^ info >> 12) & 255];
}
/// False if QEMU has to be asked first.
inline bool find_type(qemu_plugin_meminfo_t info, AccessType& type) {
  const std::uint64_t entry = cached_type(info).load(std::memory_order_relaxed);
  type = {(entry & 1u << 8) != 0, static_cast<unsigned>(entry & 0xff)};
  return entry >> 32 == info && type.bytes != 0;
}
/// Asks QEMU, then calls back. Not inlined, so that the callbacks save no registers.
template <qemu_plugin_vcpu_mem_cb_t callback>
[[gnu::noinline, gnu::cold]] void query_type(unsigned vcpu, qemu_plugin_meminfo_t info,
                                             std::uint64_t address, void* code) {
  cached_type(info).store(std::uint64_t{info} << 32 |
                              (qemu_plugin_mem_is_store(info) ? 1u << 8 : 0u) |
                              1u << qemu_plugin_mem_size_shift(info),
                          std::memory_order_relaxed);
  callback(vcpu, info, address, code);
}

} // namespace nearfar::trace
