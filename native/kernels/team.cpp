#include "kernels/team.hpp"

#include <algorithm>
#include <atomic>
#include <sched.h>
#include <system_error>
#include <thread>

#include "os/clock.hpp"
#include "os/cpu.hpp"

namespace nearfar::kernels {

namespace {

class Gate {
public:
  explicit Gate(std::size_t members) : missing_(members) {}

  void arrive_and_wait() {
    missing_.fetch_sub(1, std::memory_order_acq_rel);
    for (unsigned spins = 0; missing_.load(std::memory_order_acquire) != 0 && !open_; ++spins) {
      os::spin_pause();
      if (spins % 1024 == 1023) sched_yield();
    }
  }

  /// Releases all waiting threads, and those that arrive later.
  void open() { open_ = true; }

private:
  std::atomic<std::size_t> missing_;
  std::atomic<bool> open_{false};
};

} // namespace

double TeamRun::seconds() const {
  std::uint64_t first = UINT64_MAX;
  std::uint64_t last = 0;
  for (const Member& m : members) {
    first = std::min(first, m.start_ns);
    last = std::max(last, m.end_ns);
  }
  return static_cast<double>(last - first) * 1e-9;
}

Result<TeamRun> run_team(std::span<const int> cpus, const std::function<void(std::size_t)>& work) {
  TeamRun run;
  run.members.resize(cpus.size());
  Gate pinned(cpus.size());
  Gate start(cpus.size());
  constexpr std::size_t none = SIZE_MAX;
  std::atomic<std::size_t> refused{none}; // a member that could not be pinned or made
  const auto member = [&](std::size_t index) {
    if (!os::pin_to_cpu(cpus[index])) refused = index;
    pinned.arrive_and_wait();
    if (refused != none) return;
    start.arrive_and_wait();
    Member& m = run.members[index];
    const os::UsageMeter meter;
    m.start_ns = os::now_ns();
    work(index);
    m.end_ns = os::now_ns();
    m.usage = meter.since();
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(cpus.size());
    try {
      for (std::size_t i = 0; i < cpus.size(); ++i)
        threads.emplace_back(member, i);
    } catch (const std::system_error&) { // a limit of threads: those that wait already are let go
      refused = threads.size();
      pinned.open();
    }
  }
  if (refused != none)
    return Error::make(Errc::bad_input, "cannot run on processor %d", cpus[refused])
        .try_next("choose among the processors that `nearfar topo` lists as usable");
  return run;
}

} // namespace nearfar::kernels
