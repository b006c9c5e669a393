// SPDX-License-Identifier: MIT (LICENSE in this folder)
// The memory that recorders share with the collector: counts of each thread, and a ring of events.
//
// Order          events are consumed in the order in which producers reserved them, over all
//                threads and forked children; an event is complete when its `ready` is its position
//                + 1.
// Full           a producer waits for room before it reserves. Once the collector has set `stop`,
//                or its thread has ended, no more is recorded, and the program continues.
// Killed         a producer writes the position that it is about to reserve into its slot, and
//                clears it when its events are published. A position that no running thread claims
//                was reserved by a thread that has ended: the collector skips it. A robust mutex
//                that each thread holds shows whether it runs: the kernel marks the mutex when the
//                thread ends, by exit, exec or a signal.
// Thread safety  many producers in many processes, one consumer.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace nearfar::trace::ring {

inline constexpr std::uint64_t magic = 0x31474e4952464e; ///< "NFRING1"
inline constexpr std::uint32_t max_threads = 4096;
inline constexpr std::uint32_t max_sets = 1024;
inline constexpr unsigned line_shift = 6;

/// Kinds up to `nt_store` have the numbers of the trace file's records.
enum class EventKind : std::uint8_t {
  load = 0,
  store = 1,
  write_back = 3, ///< a dirty line left the first level
  nt_store = 4,
  site = 16,     ///< a: key, b: number of return addresses; they follow, innermost first
  more = 17,     ///< three words of the event before, whose `detail` is their number
  allocate = 18, ///< a: address, b: bytes, c: instructions, fourth: key of the site
  free = 19,     ///< a: address, c: instructions
  map = 20,      ///< a: address, b: bytes, c: instructions: anonymous memory or a file was mapped
  unmap = 21,    ///< a: address, b: bytes, c: instructions
  stack = 22,    ///< a: lowest, b: end of what this thread pushed to, c: instructions
  module = 23,   ///< a: address, b: bytes, c: offset in the file; the path follows, zero-terminated
  fork = 25,     ///< a: number of the process that forked, b: of its child
  reallocate = 24, ///< a: address, b: bytes, c: instructions, fourth: old address
  remap = 26,      ///< a: old address, b: new address, c: instructions, fourth: bytes moved
};

/// Whether an event is an access, not followed by others.
inline bool is_access(EventKind kind) { return kind <= EventKind::nt_store; }

struct Event {
  std::atomic<std::uint32_t> ready;
  EventKind kind;
  /// Of load and store: which recent load miss produced the address; 0 none, 1 the last. Of others:
  /// how many `more` events follow.
  std::uint8_t detail;
  std::uint16_t thread;
  std::uint64_t a; ///< of load, store, write_back, nt_store: the address
  std::uint64_t b; ///< the address of the code
  std::uint64_t c; ///< instructions of the thread
};

// Wide events have four numbers of 48 bits: a, b and c, whose upper 16 bits hold the fourth. In
// loads and stores the fourth is the dirty line that was evicted, 0 for none.
inline constexpr unsigned low_bits = 48;
inline constexpr std::uint64_t low_mask = (std::uint64_t{1} << low_bits) - 1;

inline std::uint64_t fourth_of(const Event& event) {
  return event.a >> low_bits | event.b >> low_bits << 16 | event.c >> low_bits << 32;
}
static_assert(sizeof(Event) == 32);

/// A mutex in shared memory that reports whether its holder has ended.
class LifeMutex {
public:
  void create() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE); // signal handlers record too
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  void lock() {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
  }
  void unlock() { pthread_mutex_unlock(&mutex_); }

  /// Whether another running thread holds it.
  bool is_held() {
    const int code = pthread_mutex_trylock(&mutex_);
    if (code == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
    if (code == 0 || code == EOWNERDEAD) unlock();
    return code == EBUSY;
  }

private:
  pthread_mutex_t mutex_;
};

/// A count that one thread writes and others read. Increments need no locked instruction.
class Count {
public:
  operator std::uint64_t() const { return value_.load(std::memory_order_relaxed); }
  Count& operator=(std::uint64_t value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  Count& operator++() { return *this = *this + 1; }

private:
  std::atomic<std::uint64_t> value_;
};

/// Counts of one thread, which only this thread writes, on two cache lines of its own.
struct alignas(128) ThreadSlot {
  Count accesses[2]; ///< loads, stores
  Count instructions;
  Count nt_stores;
  Count flushes;
  Count l1_misses;
  Count floating; ///< instructions that compute with floating point
  std::uint32_t process;
  std::uint32_t started;
  std::atomic<std::uint64_t> claim; ///< 1 + the position being written, or 0
  LifeMutex life; ///< held by the thread; the last slot's, by one of its threads while it writes
};
static_assert(sizeof(ThreadSlot) == 128);

struct Shared {
  std::uint64_t magic;
  std::uint32_t capacity; ///< events, a power of two
  std::uint32_t consumer; ///< process number of the collector
  std::uint32_t l1_sets;  ///< a power of two
  std::uint32_t l1_ways;
  std::atomic<std::uint32_t> stop;
  std::atomic<std::uint32_t> threads;    ///< slots handed out
  std::atomic<std::uint32_t> processes;  ///< numbers handed out
  std::atomic<std::uint32_t> lost;       ///< threads without a slot of their own
  std::atomic<std::uint32_t> executed;   ///< exec calls, whose programs are not recorded
  std::atomic<std::uint32_t> collecting; ///< 1 since the collector holds `collector`
  LifeMutex collector;
  std::atomic<std::uint64_t> recorded_cpu_ns;   ///< CPU time of processes until exit or exec
  alignas(128) std::atomic<std::uint64_t> tail; ///< reserved by producers
  alignas(128) std::atomic<std::uint64_t> head; ///< consumed by the collector
  alignas(128) ThreadSlot slots[max_threads];

  Event& at(std::uint64_t position) {
    return reinterpret_cast<Event*>(this + 1)[position & (capacity - 1)];
  }
  static std::size_t bytes(std::uint32_t capacity) {
    return sizeof(Shared) + std::size_t{capacity} * sizeof(Event);
  }
};

/// Maps an existing ring. On failure prints the reason and returns nullptr. Keeps no descriptor
/// open.
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
  std::fprintf(stderr, "nearfar: %s is not a ring of this version\n", path);
  return nullptr;
}

/// Whether the collector has ended without setting `stop`.
inline bool is_collector_gone(Shared& shared) {
  if (shared.collecting.load(std::memory_order_acquire) != 0) return !shared.collector.is_held();
  return kill(static_cast<pid_t>(shared.consumer), 0) != 0;
}

/// Waits until the collector has consumed the ring up to `position`; false if it never will.
inline bool wait_until_consumed(Shared& shared, std::uint64_t position) {
  for (unsigned tries = 0;; ++tries) {
    const std::uint64_t head = shared.head.load(std::memory_order_acquire);
    if (static_cast<std::int64_t>(head - position) >= 0) return true;
    if (shared.stop.load(std::memory_order_relaxed) != 0) return false;
    if (tries < 64) {
      sched_yield();
      continue;
    }
    const timespec pause{0, 50'000};
    nanosleep(&pause, nullptr);
    if (tries % 1024 == 0 && is_collector_gone(shared))
      shared.stop.store(1, std::memory_order_relaxed);
  }
}

/// A thread that fills a ring. Zeroed memory: not alone, and without a slot.
class Producer {
public:
  Shared* shared;
  bool alone; ///< no other thread or process fills it: no locked instruction is required

  /// Takes a slot for the calling thread; surplus threads share the last slot.
  std::uint32_t take_slot() {
    std::uint32_t number = shared->threads.fetch_add(1);
    if (number >= max_threads) {
      shared->lost.fetch_add(1);
      number = max_threads - 1;
    }
    slot_ = &shared->slots[number];
    shares_slot_ = number == max_threads - 1;
    if (!shares_slot_) slot_->life.lock();
    return number;
  }
  ThreadSlot& slot() const { return *slot_; }

  /// Reserves `count` consecutive events, which are then published one by one, followed by
  /// release(). False if recording has stopped.
  bool reserve(std::uint64_t count, std::uint64_t& position) const {
    if (shared->stop.load(std::memory_order_relaxed) != 0) return false;
    if (shares_slot_) [[unlikely]]
      slot_->life.lock();
    position = shared->tail.load(std::memory_order_relaxed);
    do {
      const std::uint64_t head = shared->head.load(std::memory_order_acquire);
      if (position + count - head > shared->capacity) [[unlikely]] {
        slot_->claim.store(0, std::memory_order_relaxed); // of the previous attempt
        if (!wait_until_consumed(*shared, position + count - shared->capacity)) {
          release();
          return false;
        }
      }
      slot_->claim.store(position + 1, std::memory_order_relaxed);
    } while (!advance_tail(position, count));
    prefetch(position + far_ahead);
    return true;
  }

  /// Call after publishing all reserved events.
  void release() const {
    slot_->claim.store(0, std::memory_order_release);
    if (shares_slot_) [[unlikely]]
      slot_->life.unlock();
  }

  void publish(std::uint64_t position, EventKind kind, std::uint8_t detail, std::uint16_t thread,
               std::uint64_t a, std::uint64_t b, std::uint64_t c) const {
    Event& event = shared->at(position);
    event.kind = kind;
    event.detail = detail;
    event.thread = thread;
    event.a = a;
    event.b = b;
    event.c = c;
    event.ready.store(static_cast<std::uint32_t>(position + 1), std::memory_order_release);
  }

  void push(EventKind kind, std::uint8_t detail, std::uint16_t thread, std::uint64_t a,
            std::uint64_t b, std::uint64_t c) const {
    std::uint64_t position;
    if (!reserve(1, position)) return;
    publish(position, kind, detail, thread, a, b, c);
    release();
  }

  /// Numbers are cut to 48 bits.
  void push_wide(EventKind kind, std::uint8_t detail, std::uint16_t thread, std::uint64_t a,
                 std::uint64_t b, std::uint64_t c, std::uint64_t fourth) const {
    push(kind, detail, thread, (a & low_mask) | fourth << low_bits,
         (b & low_mask) | fourth >> 16 << low_bits, (c & low_mask) | fourth >> 32 << low_bits);
  }

private:
  static constexpr std::uint64_t far_ahead = 32;

  /// False, with `position` set to the tail, if another thread was faster.
  bool advance_tail(std::uint64_t& position, std::uint64_t count) const {
    if (!alone)
      return shared->tail.compare_exchange_weak(position, position + count,
                                                std::memory_order_acq_rel);
    // A locked instruction would wait for all previous stores.
    shared->tail.store(position + count, std::memory_order_release);
    return true;
  }

  /// Requests the line for writing early: the collector's CPU has it.
  void prefetch(std::uint64_t position) const {
    asm volatile("prefetchw %0" : : "m"(shared->at(position)));
  }

  ThreadSlot* slot_;
  bool shares_slot_;
};

} // namespace nearfar::trace::ring
