#include "sim/simulate.hpp"

#include "sim/runs.hpp"

namespace nearfar::sim {

Result<Outcome> simulate(RequestSource& source, const Setup& setup) {
  if (setup.core.window == 0 || setup.core.window > max_window)
    return Error::make(Errc::bad_input, "a window of %u accesses in flight is not modelled",
                       setup.core.window)
        .try_next("give 1 to %u", max_window);
  for (const Controller* controller : {&setup.near_controller, &setup.far_controller}) {
    if (Status checked = check(*controller); !checked) return checked.error();
    if (setup.engine == Engine::fast &&
        (controller->scheduler == Scheduler::fcfs || controller->row_hit_cap))
      return Error::make(Errc::bad_input, "the fast engine models only FR-FCFS without a cap")
          .try_next("choose the exact engine");
  }
  return setup.engine == Engine::fast ? run_fast(source, setup) : run_exact(source, setup);
}

} // namespace nearfar::sim
