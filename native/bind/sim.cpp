#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"
#include "sim/checker.hpp"
#include "sim/cosimulation.hpp"
#include "sim/simulate.hpp"
#include "sim/trace_source.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

using namespace sim;

constexpr std::string_view patterns[] = {"sequential", "random", "chase"};
constexpr std::string_view engines[] = {"fast", "exact"};
constexpr std::string_view issues[] = {"blocking", "window", "trace_time"};
constexpr std::string_view command_types[] = {"activate", "read",       "write",        "precharge",
                                              "refresh",  "power_down", "self_refresh", "wake"};
constexpr double shares[] = {0.5, 0.9, 0.99, 0.999};

Device make_sim_device(const char* name, const char* kind, const Figures& figures) {
  Result<Device> made = make_device(name, by_name<MemoryKind>(kind, memory_kind_names), figures);
  if (!made) raise(made.error());
  return std::move(*made);
}

Controller make_sim_controller(const char* page_policy, double timeout_ns, const char* scheduler,
                               unsigned row_hit_cap, unsigned drain_from, unsigned drain_to,
                               unsigned drain_idle, const char* mapping,
                               std::optional<double> power_down_after_ns,
                               std::optional<double> self_refresh_after_ns) {
  Result<Controller> made =
      make_controller({page_policy, timeout_ns, scheduler, row_hit_cap, drain_from, drain_to,
                       drain_idle, mapping, power_down_after_ns, self_refresh_after_ns});
  if (!made) raise(made.error());
  return *made;
}

nb::dict energy_dict(const EnergyParts& energy) {
  nb::dict d;
  d["activate"] = energy.activate;
  d["array_write"] = energy.array_write;
  d["read"] = energy.read;
  d["write"] = energy.write;
  d["refresh"] = energy.refresh;
  d["background"] = energy.background;
  return d;
}

nb::list banks_list(const std::vector<BankActivity>& banks) {
  nb::list list;
  for (const BankActivity& bank : banks) {
    nb::dict d;
    d["channel"] = bank.channel;
    d["rank"] = bank.rank;
    d["bank_group"] = bank.group;
    d["bank"] = bank.bank;
    d["reads"] = bank.reads;
    d["writes"] = bank.writes;
    d["row_hits"] = bank.row_hits;
    d["activates"] = bank.activates;
    list.append(d);
  }
  return list;
}

nb::dict tier_dict(const TierOutcome& tier) {
  nb::dict d;
  d["reads"] = tier.reads;
  d["writes"] = tier.writes;
  d["device_reads"] = tier.activity.reads;
  d["device_writes"] = tier.activity.writes;
  d["row_hits"] = tier.activity.row_hits;
  d["activates"] = tier.activity.activates;
  d["refreshes"] = tier.activity.refreshes;
  d["active_power_down_ps"] = tier.activity.active_power_down;
  d["power_down_ps"] = tier.activity.power_down;
  d["self_refresh_ps"] = tier.activity.self_refresh;
  d["buffer_hits"] = tier.activity.buffer_hits;
  d["read_time_ps"] = tier.read_time;
  nb::list percentiles;
  for (const double share : shares)
    percentiles.append(tier.read_ns.percentile(share));
  d["read_percentiles_ns"] = percentiles;
  nb::list histogram;
  tier.read_ns.each([&](std::uint64_t bound, std::uint64_t values) {
    histogram.append(nb::make_tuple(bound, values));
  });
  d["read_histogram_ns"] = histogram;
  d["banks"] = banks_list(tier.banks);
  d["traffic_interval_ps"] = tier.ended.interval();
  d["accesses_by_interval"] = tier.ended.counts();
  d["largest_read_ns"] = tier.read_ns.largest();
  d["energy_J"] = energy_dict(tier.energy);
  d["lines_written"] = tier.wear.lines;
  d["pages_written"] = tier.wear.pages;
  d["most_line_writes"] = tier.wear.max_line;
  d["most_page_writes"] = tier.wear.max_page;
  return d;
}

nb::dict outcome_dict(const Outcome& outcome) {
  nb::dict d;
  d["end_ps"] = outcome.end;
  d["compute_ps"] = outcome.compute;
  d["stall_ps"] = outcome.stall;
  d["requests"] = outcome.requests;
  d["moved_pages"] = outcome.moved_pages;
  d["far"] = tier_dict(outcome.tiers[0]);
  d["near"] = tier_dict(outcome.tiers[1]);
  return d;
}

/// (begin, end, near)
using RangeTuple = std::tuple<std::uint64_t, std::uint64_t, bool>;

Plan make_plan(const char* rule, bool near_by_default, const std::vector<RangeTuple>& ranges,
               const std::vector<std::uint8_t>& objects, std::uint64_t near_weight,
               std::uint64_t far_weight, std::uint64_t near_bytes, double move_cost_ns) {
  Plan plan;
  plan.rule = by_name<PlacementRule>(rule, placement_rule_names);
  plan.near_by_default = near_by_default;
  for (const auto& [begin, end, near] : ranges)
    plan.ranges.push_back({begin, end, near});
  plan.objects = objects;
  plan.near_weight = near_weight;
  plan.far_weight = far_weight;
  plan.near_bytes = near_bytes;
  plan.move_cost = static_cast<Time>(move_cost_ns * 1000);
  return plan;
}

/// Runs Python's signal handlers at intervals, so that Ctrl-C ends a simulation.
class Interruptible : public RequestSource {
public:
  explicit Interruptible(RequestSource& source) : source_(source) {}

  Result<std::size_t> fill(std::span<Request> out) override {
    if (++calls_ % calls_a_look == 0) {
      const nb::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() != 0) return Error::make(Errc::os_error, "interrupted");
    }
    return source_.fill(out);
  }
  Time tail() const override { return source_.tail(); }
  bool physical() const override { return source_.physical(); }

private:
  static constexpr std::uint64_t calls_a_look = 64;
  RequestSource& source_;
  std::uint64_t calls_ = 0;
};

nb::dict simulate_source(RequestSource& source, const Device& near, const Device& far,
                         const Controller& controller, const Plan& plan, const char* engine,
                         const char* issue, unsigned window, bool posted_writes, unsigned threads,
                         std::uint64_t max_requests, bool accept_inexact) {
  Setup setup;
  setup.near = near;
  setup.far = far;
  setup.plan = plan;
  setup.engine = by_name<Engine>(engine, engines);
  setup.near_controller = setup.far_controller = controller;
  setup.core = {by_name<Issue>(issue, issues), window, posted_writes};
  setup.threads = threads;
  setup.max_requests = max_requests;
  setup.accept_inexact = accept_inexact;
  Interruptible stopping(source);
  return outcome_dict(run_unlocked([&] { return simulate(stopping, setup); }));
}

Cosimulation make_cosimulation(const Device& device, const Controller& controller,
                               unsigned read_queue) {
  Result<Cosimulation> made = Cosimulation::create(device, controller, read_queue);
  if (!made) raise(made.error());
  return std::move(*made);
}

/// (id, clock) of each completed read.
std::vector<std::pair<std::uint64_t, std::uint64_t>> tick(Cosimulation& memory,
                                                          std::uint64_t clocks) {
  std::vector<Completion> completed;
  if (Status ticked = memory.tick(clocks, completed); !ticked) raise(ticked.error());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  for (const Completion& one : completed)
    found.emplace_back(one.id, memory.clock_at(one.at));
  return found;
}

nb::dict finish(Cosimulation& memory) {
  const Cosimulation::Finished& finished = memory.finish();
  nb::dict d;
  d["reads"] = finished.activity.reads;
  d["writes"] = finished.activity.writes;
  d["row_hits"] = finished.activity.row_hits;
  d["activates"] = finished.activity.activates;
  d["refreshes"] = finished.activity.refreshes;
  d["energy_J"] = energy_dict(finished.energy);
  return d;
}

/// (object, site, frames as (module, offset), min bytes, max bytes, near); -1: any
using RuleTuple =
    std::tuple<std::int64_t, std::int64_t, std::vector<std::pair<std::string, std::uint64_t>>,
               std::uint64_t, std::uint64_t, bool>;

TraceSource open_trace(const char* path, double instruction_ps,
                       const std::vector<RuleTuple>& given) {
  std::vector<ObjectRule> rules_of;
  for (const auto& [object, site, frames, least, most, near] : given)
    rules_of.push_back({static_cast<std::uint64_t>(object), static_cast<std::uint64_t>(site),
                        frames, least, most, near});
  Result<TraceSource> source = TraceSource::open(path, instruction_ps, std::move(rules_of));
  if (!source) raise(source.error());
  return std::move(*source);
}

nb::dict trace_facts(const TraceSource& source) {
  const trace::TraceReader& reader = source.reader();
  const trace::Header& header = reader.header();
  nb::dict fields;
  for (const auto& [key, value] : header.fields)
    fields[key.c_str()] = value;
  nb::dict d;
  d["fields"] = fields;
  d["after"] = trace::name_of(header.after);
  d["records"] = reader.records();
  d["complete"] = reader.complete();
  d["ending"] = reader.ending();
  d["exit_code"] = reader.tables().exit_code;
  d["instructions"] = reader.totals()[trace::Total::instructions];
  d["matched_objects"] = source.matched_objects();
  return d;
}

/// (clock, type, rank, group, bank in the group, row)
using CommandTuple =
    std::tuple<std::uint64_t, std::string, unsigned, unsigned, unsigned, std::uint64_t>;

std::vector<std::pair<std::string, std::uint64_t>>
check_commands(const Device& device, const std::vector<CommandTuple>& recorded) {
  std::vector<Command> commands;
  const auto groups = static_cast<unsigned>(device.organization.groups);
  const auto banks = static_cast<unsigned>(device.organization.banks);
  for (const auto& [clock, type, rank, group, bank, row] : recorded)
    commands.push_back({clock * device.timing.clock, by_name<CommandType>(type, command_types),
                        false, 0, rank, group, (rank * groups + group) * banks + bank, row});
  std::vector<std::pair<std::string, std::uint64_t>> found;
  for (const Violation& violation : check_timing(device, commands))
    found.emplace_back(violation.rule, violation.missing / device.timing.clock);
  return found;
}

nb::dict timing_dict(const Device& device) {
  const Timing& t = device.timing;
  nb::dict d;
  const std::pair<const char*, Time> all[] = {
      {"clock", t.clock}, {"tRCD", t.tRCD},         {"tRCDWR", t.tRCDWR},
      {"tRP", t.tRP},     {"tRPclean", t.tRPclean}, {"tRAS", t.tRAS},
      {"CL", t.CL},       {"CWL", t.CWL},           {"burst", t.burst},
      {"tCCD", t.tCCD},   {"tCCDL", t.tCCDL},       {"tCCDLWR", t.tCCDLWR},
      {"tRRD", t.tRRD},   {"tRRDL", t.tRRDL},       {"tFAW", t.tFAW},
      {"t32AW", t.t32AW}, {"tWTR", t.tWTR},         {"tRRDpre", t.tRRDpre},
      {"tWTRL", t.tWTRL}, {"tWR", t.tWR},           {"tRTP", t.tRTP},
      {"tRTRS", t.tRTRS}, {"tRFC", t.tRFC},         {"tREFI", t.tREFI}};
  for (const auto& [name, time] : all)
    d[name] = time;
  return d;
}

} // namespace

void register_sim(nb::module_& module) {
  nb::class_<Device>(module, "SimDevice")
      .def(nb::new_(&make_sim_device), nb::arg("name"), nb::arg("kind"), nb::arg("figures"))
      .def("timing_ps", &timing_dict)
      .def("ranks", [](const Device& d) { return d.organization.channels * d.organization.ranks; })
      .def("check", &check_commands, nb::arg("commands"));
  nb::class_<Controller>(module, "SimController")
      .def(nb::new_(&make_sim_controller), nb::arg("page_policy"), nb::arg("timeout_ns"),
           nb::arg("scheduler"), nb::arg("row_hit_cap"), nb::arg("drain_from"), nb::arg("drain_to"),
           nb::arg("drain_idle"), nb::arg("mapping"), nb::arg("power_down_after_ns").none(),
           nb::arg("self_refresh_after_ns").none());
  nb::class_<Plan>(module, "SimPlan")
      .def(nb::new_(&make_plan), nb::arg("rule"), nb::arg("near_by_default"), nb::arg("ranges"),
           nb::arg("objects"), nb::arg("near_weight"), nb::arg("far_weight"), nb::arg("near_bytes"),
           nb::arg("move_cost_ns"));
  nb::class_<RequestSource>(module, "SimSource");
  nb::class_<SyntheticSource, RequestSource>(module, "SyntheticSource")
      .def(
          "__init__",
          [](SyntheticSource* self, const char* pattern, std::uint64_t count,
             std::uint64_t region_bytes, double write_share, double gap_ns, std::uint64_t seed) {
            if (region_bytes < line_bytes)
              raise(Error::make(Errc::bad_input, "a region of less than a line of 64 bytes")
                        .try_next("give --size 64 or more"));
            if (region_bytes > max_region_bytes)
              raise(Error::make(Errc::bad_input, "a synthetic region has at most 64 GiB")
                        .try_next("give --size 64GiB or less"));
            new (self) SyntheticSource({by_name<Pattern>(pattern, patterns), count, region_bytes,
                                        write_share, static_cast<Time>(gap_ns * 1000), seed});
          },
          nb::arg("pattern"), nb::arg("count"), nb::arg("region_bytes"), nb::arg("write_share"),
          nb::arg("gap_ns"), nb::arg("seed"));
  nb::class_<TraceSource, RequestSource>(module, "TraceSource")
      .def(nb::new_(&open_trace), nb::arg("path"), nb::arg("instruction_ps"), nb::arg("rules"))
      .def("facts", &trace_facts);
  nb::class_<Cosimulation>(module, "Cosimulation")
      .def(nb::new_(&make_cosimulation), nb::arg("device"), nb::arg("controller"),
           nb::arg("read_queue"))
      .def("clock", &Cosimulation::clock)
      .def("clock_ps", &Cosimulation::clock_ps)
      .def("accepts", &Cosimulation::accepts, nb::arg("address"), nb::arg("write"))
      .def("enqueue", &Cosimulation::enqueue, nb::arg("number"), nb::arg("address"),
           nb::arg("write"))
      .def("tick", &tick, nb::arg("clocks"))
      .def("finish", &finish);
  module.def("simulate", &simulate_source, nb::arg("source"), nb::arg("near"), nb::arg("far"),
             nb::arg("controller"), nb::arg("plan"), nb::arg("engine"), nb::arg("issue"),
             nb::arg("window"), nb::arg("posted_writes"), nb::arg("threads"),
             nb::arg("max_requests"), nb::arg("accept_inexact"));
}

} // namespace nearfar::bind
