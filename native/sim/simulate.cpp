#include "sim/simulate.hpp"

#include "sim/runs.hpp"

namespace nearfar::sim {

namespace {

/// Refuses settings that the fast engine does not model, or in which it differs from the exact
/// engine by more than 5 % (benchmarks/results/simulator.md).
Status check_fast(const Device& device, const Controller& controller, const Core& core) {
  const char* refused = nullptr;
  if (controller.scheduler == Scheduler::fcfs || controller.row_hit_cap)
    refused = "schedulers other than FR-FCFS without a cap";
  if (device.shape.refresh_sets > 1) refused = "refresh sets of fewer banks than a rank has";
  if (device.kind == MemoryKind::commands) {
    if (controller.power_down_after != never || controller.self_refresh_after != never)
      refused = "power states";
    if (controller.page == PagePolicy::timeout) refused = "the row policy timeout";
    if (core.issue == Issue::window && core.window > 1 && !core.posted_writes)
      refused = "more than one blocking write in flight";
  }
  if (!refused) return Done{};
  return Error::make(Errc::bad_input, "the fast engine does not model %s", refused)
      .try_next("choose the exact engine");
}

/// More than one thread requires that channels are independent of each other.
Status check_threads(const Setup& setup) {
  const bool independent = setup.engine == Engine::exact && setup.core.issue == Issue::trace_time;
  if (setup.threads <= 1 || independent) return Done{};
  return Error::make(Errc::bad_input,
                     "%u threads: channels depend on each other if a core waits for its accesses, "
                     "and the fast engine has one thread",
                     setup.threads)
      .try_next("choose one thread, or the exact engine and the core trace-time");
}

} // namespace

Result<Outcome> simulate(RequestSource& source, const Setup& setup) {
  if (setup.core.window == 0 || setup.core.window > max_window)
    return Error::make(Errc::bad_input, "a window of %u accesses in flight is not modeled",
                       setup.core.window)
        .try_next("give 1 to %u", max_window);
  if (Status checked = check_threads(setup); !checked) return checked.error();
  const std::pair<const Device&, const Controller&> memories[] = {
      {setup.near, setup.near_controller}, {setup.far, setup.far_controller}};
  for (const auto& [device, controller] : memories) {
    if (Status checked = check(controller); !checked) return checked.error();
    if (setup.engine == Engine::exact) continue;
    if (Status checked = check_fast(device, controller, setup.core); !checked)
      return checked.error();
  }
  if (setup.engine == Engine::fast) return run_fast(source, setup);
  return setup.core.issue == Issue::trace_time ? run_lanes(source, setup)
                                               : run_exact(source, setup);
}

} // namespace nearfar::sim
