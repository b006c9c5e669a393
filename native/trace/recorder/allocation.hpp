// SPDX-License-Identifier: MIT (LICENSE in this folder)
// The call chain of an allocation: return addresses along frame pointers.
//
// Frames         see base/frame_walk.hpp. An address counts only if it follows a call instruction
//                in mapped code.
// Thread safety  any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <sys/uio.h>
#include <unistd.h>

#include "base/frame_walk.hpp"

namespace nearfar::trace {

/// Report of the shim on an allocation.
struct Allocation {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t before; ///< the old address of a resized block; else 0
  std::uint64_t caller; ///< return address
  std::uint64_t frame;  ///< where the shim keeps its caller's frame pointer
};

/// Address ranges of code.
class CodeRanges {
public:
  void add(std::uint64_t low, std::uint64_t bytes) {
    const unsigned at = reserved_.fetch_add(1, std::memory_order_relaxed);
    if (at >= most) return;
    ranges_[at].high.store(low + bytes, std::memory_order_relaxed);
    ranges_[at].low.store(low, std::memory_order_release);
  }

  /// Whether the address follows a call instruction in code.
  bool follows_call(std::uint64_t address) const {
    return holds(address) && follows_call_instruction(address);
  }

private:
  static constexpr unsigned most = 1024;
  struct Range {
    std::atomic<std::uint64_t> low{~std::uint64_t{0}};
    std::atomic<std::uint64_t> high{0};
  };

  bool holds(std::uint64_t address) const {
    const unsigned reserved = reserved_.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < reserved && i < most; ++i)
      if (address >= ranges_[i].low.load(std::memory_order_acquire) + 8 &&
          address < ranges_[i].high.load(std::memory_order_relaxed))
        return true;
    return false;
  }

  Range ranges_[most];
  std::atomic<unsigned> reserved_{0};
};

struct CallChain {
  static constexpr unsigned max_frames = 4;
  std::uint64_t codes[max_frames];
  unsigned length = 0;
  std::uint64_t key = 0; ///< a hash of 48 bits
};

/// Reads a frame whose address may be invalid.
inline bool try_read_frame(std::uintptr_t at, FrameRecord& record) {
  const iovec here{&record, sizeof record};
  const iovec there{reinterpret_cast<void*>(at), sizeof record};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof record);
}

/// Follows frame pointers.
inline CallChain chain_of(const Allocation& allocation, const CodeRanges& code) {
  CallChain chain;
  chain.codes[chain.length++] = allocation.caller;
  walk_frames(allocation.frame, try_read_frame, [&](std::uintptr_t caller) {
    if (!code.follows_call(caller)) return false;
    chain.codes[chain.length++] = caller;
    return chain.length < CallChain::max_frames;
  });
  chain.key = chain.length;
  for (unsigned i = 0; i < chain.length; ++i)
    chain.key = hash_with(chain.key, chain.codes[i]);
  chain.key = chain.key >> 16 | 1;
  return chain;
}

/// Chains that were reported already. If the table is full some are reported again, without harm.
class ReportedSites {
public:
  /// Adds a chain; true if it is to be reported.
  bool is_new(std::uint64_t key) {
    std::size_t at = (key >> 8) % size;
    for (unsigned tries = 0; tries < 32; ++tries, at = (at + 1) % size) {
      const std::uint64_t known = reported_[at].load(std::memory_order_relaxed);
      if (known == key) return false;
      if (known != 0) continue;
      reported_[at].store(key, std::memory_order_relaxed);
      break;
    }
    return true;
  }

private:
  static constexpr std::size_t size = 1u << 16;
  std::atomic<std::uint64_t> reported_[size];
};

} // namespace nearfar::trace
