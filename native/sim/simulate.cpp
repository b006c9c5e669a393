#include "sim/simulate.hpp"

#include "sim/runs.hpp"

namespace nearfar::sim {

Result<Outcome> simulate(RequestSource& source, const Setup& setup) {
  if (setup.core.window == 0 || setup.core.window > max_window)
    return Error::make(Errc::bad_input, "a window of %u accesses in flight is not modelled",
                       setup.core.window)
        .try_next("give 1 to %u", max_window);
  for (const Controller* controller : {&setup.near_controller, &setup.far_controller})
    if (controller->drain_from == 0 || controller->drain_to >= controller->drain_from)
      return Error::make(Errc::bad_input, "invalid write drain: from %u to %u",
                         controller->drain_from, controller->drain_to)
          .try_next("choose drain_to smaller than drain_from");
  return setup.engine == Engine::fast ? run_fast(source, setup) : run_exact(source, setup);
}

} // namespace nearfar::sim
