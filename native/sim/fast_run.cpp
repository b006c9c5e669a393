#include "sim/fast_banks.hpp"
#include "sim/queued.hpp"
#include "sim/replay.hpp"
#include "sim/runs.hpp"

namespace nearfar::sim {

namespace {

/// One memory of the fast engine. Returns the end of each access when it is sent.
class FastMemory {
public:
  static constexpr bool in_order = true;

  static Result<FastMemory> create(const Device& device, const Controller& controller,
                                   std::vector<Command>* /*no commands are issued*/) {
    FastMemory memory;
    if (device.kind == MemoryKind::commands) {
      memory.banks_.emplace(device, controller);
    } else {
      Result<QueuedMemory> queued = QueuedMemory::create(device);
      if (!queued) return queued.error();
      memory.queued_.emplace(std::move(*queued));
    }
    return memory;
  }

  /// serve() without an optional, which GCC 12 returns through the stack.
  Time end_of(Time at, std::uint64_t line, bool write) {
    return banks_ ? banks_->serve(at, line, write) : queued_->serve(at, line, write);
  }
  std::optional<Time> serve(std::uint64_t /*id*/, Time at, std::uint64_t line, bool write) {
    return end_of(at, line, write);
  }
  std::optional<Time> post(Time at, std::uint64_t line) {
    return banks_ ? banks_->post(at, line) : queued_->accept(at, line);
  }
  void read_for_migration(Time at, std::uint64_t line) { serve(no_access, at, line, false); }

  Time next() const { return never; }
  std::optional<Completion> step() { return std::nullopt; }

  Activity finish(Time end) {
    if (!banks_) return queued_->activity();
    banks_->drain(end);
    banks_->finish(end);
    return banks_->activity();
  }
  std::vector<BankActivity> banks() const { return {}; }

private:
  std::optional<FastBanks> banks_;
  std::optional<QueuedMemory> queued_;
};

/// Passes requests on to a run and to a sampler.
class SampledRun {
public:
  SampledRun(Run<FastMemory>& run, AccuracySampler& sampler) : run_(run), sampler_(sampler) {}

  Time now() const { return run_.now(); }
  void stall(Time time) {
    sampler_.stall(time);
    run_.stall(time);
  }
  void move(const PlacedAccess& placed) {
    sampler_.move(placed);
    run_.move(placed);
  }
  void expect_write(const PlacedAccess& placed) { run_.expect_write(placed); }
  void issue(const Request& request, const PlacedAccess& placed) {
    sampler_.issue(request, placed, run_.now());
    run_.issue(request, placed);
  }

private:
  Run<FastMemory>& run_;
  AccuracySampler& sampler_;
};

/// Whether the run is sampled. In trace time requests do not wait, so that only the last ones
/// count.
bool is_sampled(const Setup& setup) {
  return !setup.accept_inexact && setup.core.issue != Issue::trace_time &&
         (setup.near.kind == MemoryKind::commands || setup.far.kind == MemoryKind::commands);
}

} // namespace

Result<Outcome> run_fast(RequestSource& source, const Setup& setup) {
  Result<Run<FastMemory>> run = make_run<FastMemory>(setup, setup.plan, source.physical());
  if (!run) return run.error();
  if (!is_sampled(setup)) return run->run(source);
  AccuracySampler sampler(setup);
  SampledRun sampled(*run, sampler);
  Result<Outcome> outcome = run->run(source, sampled);
  if (!outcome) return outcome;
  Result<SampledTimes> times = sampler.finish(run->now());
  if (!times) return times.error();
  outcome->sampled = *times;
  return outcome;
}

Result<ReplayTimes> replay_fast(std::span<const SampledEvent> events, const Setup& setup) {
  return replay_with<FastMemory>(events, setup);
}

} // namespace nearfar::sim
