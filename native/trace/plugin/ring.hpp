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
  allocate = 18, ///< a: address, b: bytes, c: instructions, fourth: key of the site
  free = 19,     ///< a: address, c: instructions
  map = 20,      ///< a: address, b: bytes, c: instructions: anonymous memory or a file was mapped
  unmap = 21,    ///< a: address, b: bytes, c: instructions
  stack = 22,    ///< a: lowest, b: end of what this thread pushed to, c: instructions
  module = 23,   ///< a: address, b: bytes, c: offset in the file; the path follows, zero-terminated
  fork = 25,     ///< a: number of the process that forked, b: of its child
  reallocate = 24, ///< a: address, b: bytes, c: instructions, fourth: address before
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

// Where four numbers are told, they have 48 bits each: a, b and c, and above them the fourth, 16
// bits in each. Of a load and a store, that is the line that was dirty and driven out, 0 for none.
inline constexpr unsigned low_bits = 48;
inline constexpr std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1;

inline std::uint64_t fourth_of(const Entry& entry) {
  return entry.a >> low_bits | entry.b >> low_bits << 16 | entry.c >> low_bits << 32;
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

  Entry& at(std::uint64_t position) {
    return reinterpret_cast<Entry*>(this + 1)[position & (capacity - 1)];
  }
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

/// Who fills a ring. Zeroed, it is one of many.
struct Producer {
  Shared* shared;
  bool alone; ///< no other thread or process fills it: nothing has to be locked

  /// Reserves `count` entries that follow each other; false if nothing is recorded any more.
  bool reserve(std::uint64_t count, std::uint64_t& position) const {
    if (shared->stop.load(std::memory_order_relaxed) != 0) return false;
    if (alone) { // a locked addition would wait for all stores before it
      position = shared->tail.load(std::memory_order_relaxed);
      shared->tail.store(position + count, std::memory_order_relaxed);
    } else {
      position = shared->tail.fetch_add(count, std::memory_order_relaxed);
    }
    fetch(position + far_ahead);
    if (position + count - shared->head.load(std::memory_order_acquire) <= shared->capacity)
      return true;
    return wait_for_room(*shared, position + count);
  }

  void publish(std::uint64_t position, What what, std::uint8_t detail, std::uint16_t thread,
               std::uint64_t a, std::uint64_t b, std::uint64_t c) const {
    Entry& entry = shared->at(position);
    entry.what = what;
    entry.detail = detail;
    entry.thread = thread;
    entry.a = a;
    entry.b = b;
    entry.c = c;
    entry.ready.store(static_cast<std::uint32_t>(position + 1), std::memory_order_release);
  }

  void push(What what, std::uint8_t detail, std::uint16_t thread, std::uint64_t a, std::uint64_t b,
            std::uint64_t c) const {
    std::uint64_t position;
    if (reserve(1, position)) publish(position, what, detail, thread, a, b, c);
  }

  /// Numbers of more than 48 bits lose those above.
  void push_four(What what, std::uint8_t detail, std::uint16_t thread, std::uint64_t a,
                 std::uint64_t b, std::uint64_t c, std::uint64_t fourth) const {
    push(what, detail, thread, (a & low_mask) | fourth << low_bits,
         (b & low_mask) | fourth >> 16 << low_bits, (c & low_mask) | fourth >> 32 << low_bits);
  }

private:
  static constexpr std::uint64_t far_ahead = 32;

  /// The other core has read this entry's memory: it is asked for in time.
  void fetch(std::uint64_t position) const {
    asm volatile("prefetchw %0" : : "m"(shared->at(position)));
  }
};

} // namespace nearfar::trace::ring
