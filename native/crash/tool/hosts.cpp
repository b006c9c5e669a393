#include "crash/tool/hosts.hpp"

#include <algorithm>
#include <iterator>

namespace nearfar::crash {

namespace {

/// Adds what one kind of crash left to the sums.
void add(Exploration& sum, Exploration&& part) {
  for (Finding& finding : part.findings)
    finding.found_at += sum.states;
  std::move(part.findings.begin(), part.findings.end(), std::back_inserter(sum.findings));
  const bool first = sum.points == 0;
  sum.states += part.states;
  sum.states_left += part.states_left;
  sum.points += part.points;
  sum.violations += part.violations;
  sum.recovery_states += part.recovery_states;
  sum.stores = part.stores;
  sum.stores_tried = first ? part.stores_tried : std::min(sum.stores_tried, part.stores_tried);
  sum.places = part.places;
  sum.places_tried = first ? part.places_tried : std::min(sum.places_tried, part.places_tried);
  sum.cut_off = sum.cut_off || part.cut_off;
  sum.seconds += part.seconds;
}

} // namespace

Status expect_two_hosts(const storelog::Log& log) {
  for (const storelog::Event& event : log.events)
    if (event.host != 0) return Done{};
  return Error::make(Errc::bad_input, "no store, load or flush was made on a second host")
      .try_next("call nearfar_crash_host(1) in a thread of the program "
                "(nearfar/crash_intrinsics.h), or leave out --hosts");
}

void run_on_one_host(storelog::Log& log) {
  for (storelog::Event& event : log.events)
    event.host = 0;
}

HostExploration explore_hosts(Checked& checked, Arena& arena, const Trace& trace, Options options,
                              const std::function<void(const Progress&)>& progress) {
  HostExploration result;
  const std::uint64_t budget = options.budget;
  const std::uint64_t violations = options.violations;
  for (std::size_t i = 0; i < crashes_of_two_hosts.size(); ++i) {
    const std::size_t rest = crashes_of_two_hosts.size() - i;
    options.loss = crashes_of_two_hosts[i];
    if (budget != 0) options.budget = (budget - result.all.states) / rest;
    options.violations = violations - result.all.violations;
    if (options.violations == 0 || (budget != 0 && options.budget == 0)) {
      result.all.stores_tried = result.all.places_tried = 0; // this crash was not explored
      continue;
    }
    Explorer explorer(checked, arena, trace, options);
    Exploration part = explorer.explore([&](const Progress& of_this) {
      Progress shown = of_this;
      shown.states += result.all.states;
      shown.violations += result.all.violations;
      shown.done = (static_cast<double>(i) + of_this.done) / crashes_of_two_hosts.size();
      progress(shown);
    });
    result.counts.push_back({options.loss, part.states, part.states_left, part.violations});
    add(result.all, std::move(part));
  }
  return result;
}

} // namespace nearfar::crash
