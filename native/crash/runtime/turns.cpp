#include "crash/runtime/turns.hpp"

#include <atomic>
#include <cstdio>
#include <ctime>

#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

namespace {

constexpr int patience_ms = 500;

int first = 0; ///< the thread that goes first; 0: no turn was requested
std::uint64_t held_flush = 0;
std::atomic<bool> others_may_go{false};
std::atomic<int> threads_created{0};
std::atomic<int> others_ended{0};
std::atomic<std::uint64_t> steps{0}; ///< operations begun and ended, and threads ended

thread_local int number = 0; ///< 0: the main thread, which does not wait
thread_local bool has_begun = false;
thread_local std::uint64_t flushes = 0;

/// Waits until `done` returns true, or nothing has happened for a while.
template <class Done>
void wait_until(Done done) {
  std::uint64_t known = steps.load();
  for (int idle_ms = 0; idle_ms < patience_ms && !done(); ++idle_ms) {
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
    if (const std::uint64_t now = steps.load(); now != known) {
      known = now;
      idle_ms = 0;
    }
  }
}

} // namespace

void request_turn(const char* text) {
  unsigned long flush = 0;
  if (text == nullptr || std::sscanf(text, "%d:%lu", &first, &flush) != 2) return;
  held_flush = flush;
}

bool has_turns() { return first != 0; }

void turn_at_begin() {
  if (!has_turns() || number == 0) return;
  if (number != first && !has_begun) wait_until([] { return others_may_go.load(); });
  has_begun = true;
  steps.fetch_add(1);
}

void turn_at_end() {
  if (has_turns()) steps.fetch_add(1);
}

void turn_at_flush() {
  if (number == 0 || number != first || !has_begun || ++flushes != held_flush) return;
  others_may_go = true;
  wait_until([] {
    const int others = threads_created.load() - 1;
    return others > 0 && others_ended.load() == others;
  });
}

NumberedThread number_thread() {
  if (!has_turns()) return {};
  return {threads_created.fetch_add(1) + 1, reserve_thread_number()};
}

void turn_at_thread_start(NumberedThread made) {
  if (!has_turns()) return;
  number = made.number;
  use_thread_number(made.in_log);
}

void turn_at_thread_end() {
  if (number == 0) return;
  steps.fetch_add(1);
  if (number == first)
    others_may_go = true;
  else
    others_ended.fetch_add(1);
}

} // namespace nearfar::crash::runtime
