// SPDX-License-Identifier: MIT (LICENSE in this folder)
// The memory that recorders and the filter share: counts of each thread, and a ring of what
// happened.
//
// Order          entries are taken in the order in which producers reserved them, over all threads
//                and forked children; an entry is there when its `ready` is its position + 1.
// Full           a producer waits while the filter lives; when the filter has set `stop`, or is
//                gone, nothing more is recorded and the program runs on.
// Thread safety  many producers in many processes, one consumer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace nearfar::trace::ring {

inline constexpr std::uint64_t magic = 0x31474e4952464e; ///< "NFRING1"
inline constexpr std::uint32_t most_threads = 4096;
inline constexpr std::uint32_t most_sets = 1024;
inline constexpr unsigned line_shift = 6;

/// What an entry tells. Up to `nt_store` as records of the file.
enum class What : std::uint8_t {
  load = 0,
  store = 1,
  write_back = 3, ///< a dirty line left the first level
  nt_store = 4,
  site = 16,     ///< a: key, b: number of return addresses; they follow, innermost first
  more = 17,     ///< three words of the entry before, whose `detail` says how many such follow
  allocate = 18, ///< a: address, b: bytes, c: key of the site; instructions follow
  free = 19,     ///< a: address, c: instructions
  map = 20,      ///< a: address, b: bytes, c: instructions: anonymous memory or a file was mapped
  unmap = 21,    ///< a: address, b: bytes, c: instructions
  stack = 22,    ///< a: lowest, b: end of what this thread pushed to, c: instructions
  module = 23,   ///< a: address, b: bytes, c: offset in the file; the path follows, zero-terminated
  fork = 25,     ///< a: number of the process that forked, b: of its child
  reallocate = 24, ///< a: address, b: bytes, c: address before; instructions follow
};

/// One thing that happened, 32 bytes.
struct Entry {
  std::atomic<std::uint32_t> ready;
  What what;
  std::uint8_t
      detail; ///< of load and store: which recent miss made the address, 0 none, 1 the last
  std::uint16_t thread;
  std::uint64_t a; ///< of load, store, write_back, nt_store: the address
  std::uint64_t b; ///< the address of the code
  std::uint64_t c; ///< instructions of the thread
};

// A miss and the dirty line that it drove out are one entry: a, b and c are numbers of 48 bits, and
// the line's number lies in the bits above, 14 bits in each.
inline constexpr unsigned low_bits = 48;
inline constexpr std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1;
inline constexpr unsigned victim_bits = 14;
inline constexpr std::uint64_t victim_mask = (1u << victim_bits) - 1;

inline std::uint64_t victim_of(const Entry& entry) {
  return entry.a >> low_bits | entry.b >> low_bits << victim_bits |
         entry.c >> low_bits << 2 * victim_bits;
}
static_assert(sizeof(Entry) == 32);

/// Counts of one thread, written by it alone, two cache lines apart from others'.
struct alignas(128) Slot {
  std::uint64_t accesses[2]; ///< loads, stores
  std::uint64_t instructions;
  std::uint64_t nt_stores;
  std::uint64_t flushes;
  std::uint64_t l1_misses;
  std::uint64_t floating; ///< instructions that compute with floating point
  std::uint32_t process;
  std::uint32_t started;
};

struct Shared {
  std::uint64_t magic;
  std::uint32_t capacity; ///< entries, a power of two
  std::uint32_t consumer; ///< its process number
  std::uint32_t l1_sets;  ///< a power of two
  std::uint32_t l1_ways;
  std::atomic<std::uint32_t> stop;
  std::atomic<std::uint32_t> threads;   ///< slots handed out
  std::atomic<std::uint32_t> processes; ///< numbers handed out
  std::atomic<std::uint32_t> lost;      ///< threads for which there was no slot
  std::atomic<std::uint32_t> executed;  ///< attempts to become another program, which is not seen
  alignas(128) std::atomic<std::uint64_t> tail; ///< reserved by producers
  alignas(128) std::atomic<std::uint64_t> head; ///< taken by the consumer
  alignas(128) Slot slots[most_threads];

  Entry* entries() { return reinterpret_cast<Entry*>(this + 1); }
  static std::size_t bytes(std::uint32_t capacity) {
    return sizeof(Shared) + std::size_t{capacity} * sizeof(Entry);
  }
};

/// Maps a ring that somebody made; nullptr with a reason on standard error. Leaves no descriptor.
inline Shared* attach(const char* path) {
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  const off_t bytes = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
  void* at = bytes < static_cast<off_t>(sizeof(Shared))
                 ? MAP_FAILED
                 : mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  if (at == MAP_FAILED) {
    std::fprintf(stderr, "nearfar: cannot map the ring %s\n", path);
    return nullptr;
  }
  auto* shared = static_cast<Shared*>(at);
  if (shared->magic == magic) return shared;
  std::fprintf(stderr, "nearfar: %s is no ring of this version\n", path);
  return nullptr;
}

/// Waits for room. False if nobody will make any.
inline bool wait_for_room(Shared& shared, std::uint64_t needed) {
  for (unsigned tries = 0;; ++tries) {
    if (needed - shared.head.load(std::memory_order_acquire) <= shared.capacity) return true;
    if (shared.stop.load(std::memory_order_relaxed) != 0) return false;
    if (tries < 64) {
      sched_yield();
      continue;
    }
    const timespec pause{0, 50'000};
    nanosleep(&pause, nullptr);
    if (tries % 1024 == 0 && kill(static_cast<pid_t>(shared.consumer), 0) != 0)
      shared.stop.store(1, std::memory_order_relaxed);
  }
}

/// Reserves `count` entries that follow each other; false if nothing is recorded any more.
inline bool reserve(Shared& shared, std::uint64_t count, std::uint64_t& position) {
  if (shared.stop.load(std::memory_order_relaxed) != 0) return false;
  position = shared.tail.fetch_add(count, std::memory_order_relaxed);
  if (position + count - shared.head.load(std::memory_order_acquire) <= shared.capacity)
    return true;
  return wait_for_room(shared, position + count);
}

inline void publish(Shared& shared, std::uint64_t position, What what, std::uint8_t detail,
                    std::uint16_t thread, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  Entry& entry = shared.entries()[position & (shared.capacity - 1)];
  entry.what = what;
  entry.detail = detail;
  entry.thread = thread;
  entry.a = a;
  entry.b = b;
  entry.c = c;
  entry.ready.store(static_cast<std::uint32_t>(position + 1), std::memory_order_release);
}

inline void push(Shared& shared, What what, std::uint8_t detail, std::uint16_t thread,
                 std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t position;
  if (reserve(shared, 1, position)) publish(shared, position, what, detail, thread, a, b, c);
}

/// `victim`: number of the dirty line that was driven out, 0 for none.
inline void push_miss(Shared& shared, What what, std::uint8_t detail, std::uint16_t thread,
                      std::uint64_t address, std::uint64_t code, std::uint64_t instructions,
                      std::uint64_t victim) {
  push(shared, what, detail, thread, address | (victim & victim_mask) << low_bits,
       (code & low_mask) | (victim >> victim_bits & victim_mask) << low_bits,
       (instructions & low_mask) | (victim >> 2 * victim_bits & victim_mask) << low_bits);
}

} // namespace nearfar::trace::ring
