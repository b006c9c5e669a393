#include "os/lock.hpp"

#include <atomic>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace nearfar;

TEST_CASE("a lock is held by one thread at a time, and each thread knows whether it is the one") {
  os::Lock lock;
  std::uint64_t counted = 0;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&]() NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
      for (int i = 0; i < 20'000; ++i) {
        if (lock.held_by_this_thread()) ++wrong;
        const os::LockGuard guard(lock);
        if (!lock.held_by_this_thread() || lock.try_lock()) ++wrong;
        ++counted;
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(counted == 80'000);
  CHECK(wrong == 0);
}

TEST_CASE("a lock that another thread holds is not acquired in time, one that it releases is") {
  os::Lock lock;
  std::atomic<bool> taken{false};
  std::atomic<bool> tried{false};
  std::thread thread([&]() NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
    lock.lock();
    taken = true;
    while (!tried)
      std::this_thread::yield();
    lock.unlock();
  });
  while (!taken)
    std::this_thread::yield();
  bool in_time = lock.lock_within(1);
  CHECK_FALSE(in_time);
  tried = true;
  constexpr unsigned minute_ms = 60'000;
  in_time = in_time || lock.lock_within(minute_ms);
  CHECK(in_time);
  if (in_time) lock.unlock();
  thread.join();
}

TEST_CASE("in the child of a fork, a lock keeps its holder") {
  os::Lock mine;
  os::Lock other;
  std::atomic<bool> taken{false};
  std::atomic<bool> done{false};
  std::thread thread([&] {
    const os::LockGuard guard(other);
    taken = true;
    while (!done)
      std::this_thread::yield();
  });
  while (!taken)
    std::this_thread::yield();
  const os::LockGuard guard(mine);
  const pid_t child = fork();
  if (child == 0) _exit(mine.held_by_this_thread() && !other.held_by_this_thread() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  done = true;
  thread.join();
  CHECK(status == 0);
}
