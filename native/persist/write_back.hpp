// Makes stores to a pool durable: flushes and fences for the pool's medium, each reported.
//
// flush()        begins the write-back of lines (by msync: writes their pages back and waits).
// write_lines()  stores and begins the write-back of whole lines.
// fence()        returns when every flush and written line of this thread is durable.
// Reports        to storelog, with the line of the caller.
// Errors         a failed msync is remembered: from then on failed() is true, because data that was
//                reported as durable may not be.
// Thread safety  by several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "os/cpu.hpp"
#include "os/flush.hpp"
#include "os/pages.hpp"
#include "persist/durability.hpp"
#include "storelog/storelog.hpp"

namespace nearfar::persist {

using storelog::Site;

class WriteBack {
public:
  explicit WriteBack(Durability durability) : how_(best(durability)) {}

  void flush(const void* at, std::size_t bytes, Site site = Site::current()) {
    storelog::flush(at, bytes, site);
    std::atomic_signal_fence(std::memory_order_seq_cst); // the compiler keeps stores before it
    const auto first = reinterpret_cast<std::uintptr_t>(at) & ~(os::cache_line_bytes - 1);
    const auto end = reinterpret_cast<std::uintptr_t>(at) + bytes;
    switch (how_) {
    case How::clwb: return each_line<os::write_back_clwb>(first, end);
    case How::clflushopt: return each_line<os::flush_clflushopt>(first, end);
    case How::clflush: return each_line<os::flush_clflush>(first, end);
    case How::none: return;
    case How::msync: return sync_pages(first, end);
    }
  }

  /// Copies whole lines and begins to make them durable, by non-temporal stores, which cost less
  /// than a store and a flush if the lines are not read again soon (by msync: waits).
  void write_lines(std::byte* to, const std::byte* from, std::size_t bytes,
                   Site site = Site::current()) {
    if (how_ == How::msync) {
      std::memcpy(to, from, bytes);
      storelog::store(to, bytes, site);
      return flush(to, bytes, site);
    }
    for (std::size_t at = 0; at < bytes; at += os::cache_line_bytes)
      os::stream_64(to + at, from + at);
    storelog::nt_store(to, bytes, site);
  }

  void fence(Site site = Site::current()) {
    storelog::fence(site);
    if (how_ != How::msync) os::fence();
  }

  /// Number of bytes that a flush of one byte writes back.
  std::uint64_t unit_bytes() const { return how_ == How::msync ? page : os::cache_line_bytes; }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

private:
  enum class How : unsigned char { clwb, clflushopt, clflush, none, msync };

  static constexpr std::uintptr_t page = 4096;

  static How best(Durability durability) {
    if (durability == Durability::msync) return How::msync;
    if (durability == Durability::fence) return How::none;
    if (os::can_persist(os::Persist::clwb)) return How::clwb;
    return os::can_persist(os::Persist::clflushopt) ? How::clflushopt : How::clflush;
  }

  template <void (*instruction)(void*)>
  static void each_line(std::uintptr_t first, std::uintptr_t end) {
    for (auto line = first; line < end; line += os::cache_line_bytes)
      instruction(reinterpret_cast<void*>(line));
  }

  void sync_pages(std::uintptr_t first, std::uintptr_t end) {
    first &= ~(page - 1);
    if (!os::sync_range(reinterpret_cast<const std::byte*>(first), end - first))
      failed_.store(true, std::memory_order_relaxed);
  }

  How how_;
  std::atomic<bool> failed_{false};
};

} // namespace nearfar::persist
