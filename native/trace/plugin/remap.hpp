// SPDX-License-Identifier: MIT (LICENSE in this folder)
// mremap: pages that stay mapped keep what they hold, and are not touched for a first time again.
//
// Thread safety  as Core.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trace/plugin/capture.hpp"

namespace nearfar::trace {

/// `bytes` at `before` became `bytes_now` at `address`.
inline void tell_remapped(Core& core, std::uint64_t before, std::uint64_t bytes,
                          std::uint64_t address, std::uint64_t bytes_now) {
  const std::uint64_t now = core.slot->instructions;
  if (address != before) {
    core.tell(ring::What::map, address, bytes_now, now);
    core.tell_four(ring::What::remap, before, address, now, std::min(bytes, bytes_now));
    return;
  }
  if (bytes_now > bytes) core.tell(ring::What::map, before + bytes, bytes_now - bytes, now);
  if (bytes_now < bytes) core.tell(ring::What::unmap, before + bytes_now, bytes - bytes_now, now);
}

} // namespace nearfar::trace
