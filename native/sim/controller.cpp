#include "sim/controller.hpp"

namespace nearfar::sim {

Status check(const Controller& controller) {
  if (controller.drain_from == 0 || controller.drain_from > max_drain_from ||
      controller.drain_to >= controller.drain_from || controller.drain_idle == 0 ||
      controller.drain_idle > controller.drain_from)
    return Error::make(Errc::bad_input, "invalid write drain: from %u to %u, idle from %u",
                       controller.drain_from, controller.drain_to, controller.drain_idle)
        .try_next("drain from at most %u writes to fewer; idle from 1 up to the first of them",
                  max_drain_from);
  if (controller.scheduler == Scheduler::fcfs && controller.row_hit_cap)
    return Error::make(Errc::bad_input, "a cap on row hits has no effect with FCFS")
        .try_next("leave the cap out, or choose FR-FCFS");
  return Done{};
}

} // namespace nearfar::sim
