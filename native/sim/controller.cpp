#include "sim/controller.hpp"

namespace nearfar::sim {

namespace {

constexpr double max_ns = 1e9;
constexpr double ps_per_ns = 1000;

/// The value whose number is the index of `name` in `names`. Errors: bad_input that lists `known`.
template <class Setting, std::size_t count>
Result<Setting> named(const char* what, std::string_view name,
                      const std::string_view (&names)[count], const char* known) {
  for (std::size_t i = 0; i < count; ++i)
    if (names[i] == name) return static_cast<Setting>(i);
  return Error::make(Errc::bad_input, "unknown %s '%.*s'", what, static_cast<int>(name.size()),
                     name.data())
      .try_next("use %s", known);
}

/// An idle time in ps. `what`: the event at its end. Errors: bad_input unless 0 to 1 s.
Result<Time> idle_time(const char* what, double ns) {
  if (ns >= 0 && ns <= max_ns) return static_cast<Time>(ns * ps_per_ns);
  return Error::make(Errc::bad_input, "invalid idle time until %s: %g ns", what, ns)
      .try_next("give 0 to 1e9 ns (a second)");
}

} // namespace

Status check(const Controller& controller) {
  if (controller.drain_from == 0 || controller.drain_from > max_drain_from ||
      controller.drain_to >= controller.drain_from || controller.drain_idle == 0 ||
      controller.drain_idle > controller.drain_from)
    return Error::make(Errc::bad_input, "invalid write drain %u:%u:%u", controller.drain_from,
                       controller.drain_to, controller.drain_idle)
        .try_next("give FROM:TO:IDLE with FROM at most %u, TO below FROM, and IDLE from 1 to FROM",
                  max_drain_from);
  if (controller.scheduler == Scheduler::fcfs && controller.row_hit_cap)
    return Error::make(Errc::bad_input, "a cap on row hits has no effect with FCFS")
        .try_next("omit the cap, or choose FR-FCFS");
  return Done{};
}

Result<Controller> make_controller(const ControllerSettings& settings) {
  Controller made;
  Result<PagePolicy> page = named<PagePolicy>("page policy", settings.page_policy,
                                              page_policy_names, "open, closed or timeout");
  if (!page) return page.error();
  Result<Time> timeout = idle_time("a row is closed", settings.timeout_ns);
  if (!timeout) return timeout.error();
  Result<Scheduler> scheduler =
      named<Scheduler>("scheduler", settings.scheduler, scheduler_names, "fr-fcfs or fcfs");
  if (!scheduler) return scheduler.error();
  Result<AddressMapping> mapping = parse_mapping(settings.mapping);
  if (!mapping) return mapping.error();
  made.page = *page;
  made.timeout = *timeout;
  made.scheduler = *scheduler;
  made.row_hit_cap = settings.row_hit_cap;
  made.drain_from = settings.drain_from;
  made.drain_to = settings.drain_to;
  made.drain_idle = settings.drain_idle;
  made.mapping = *mapping;
  if (settings.power_down_after_ns) {
    Result<Time> idle = idle_time("a rank powers down", *settings.power_down_after_ns);
    if (!idle) return idle.error();
    made.power_down_after = *idle;
  }
  if (settings.self_refresh_after_ns) {
    Result<Time> idle = idle_time("a rank enters self-refresh", *settings.self_refresh_after_ns);
    if (!idle) return idle.error();
    made.self_refresh_after = *idle;
  }
  if (Status checked = check(made); !checked) return checked.error();
  return made;
}

} // namespace nearfar::sim
