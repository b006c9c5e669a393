// SPDX-License-Identifier: MIT (LICENSE in this folder)
// Events of mremap(): pages that stay mapped keep their contents and have been touched before.
//
// Thread safety  as ThreadRecorder.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trace/recorder/thread_recorder.hpp"

namespace nearfar::trace {

/// `bytes` at `before` became `bytes_now` at `address`.
inline void record_remap(ThreadRecorder& recorder, std::uint64_t before, std::uint64_t bytes,
                         std::uint64_t address, std::uint64_t bytes_now) {
  if (address != before) {
    recorder.emit(ring::EventKind::map, address, bytes_now);
    recorder.emit_wide(ring::EventKind::remap, before, address, std::min(bytes, bytes_now));
    return;
  }
  if (bytes_now > bytes) recorder.emit(ring::EventKind::map, before + bytes, bytes_now - bytes);
  if (bytes_now < bytes)
    recorder.emit(ring::EventKind::unmap, before + bytes_now, bytes - bytes_now);
}

} // namespace nearfar::trace
