#include "bench/counted_region.hpp"

#include <algorithm>

namespace nearfar::bench {

Result<CountedRegion> CountedRegion::create(const Names& groups, std::size_t threads) {
  CountedRegion region;
  region.names_ = groups;
  region.threads_.resize(threads);
  for (const std::vector<std::string>& group : groups) {
    auto& events = region.events_.emplace_back();
    for (const std::string& name : group) {
      Result<os::CounterEvent> event = os::find_counter(name.c_str());
      if (!event) return event.error();
      events.push_back(*event);
    }
    Result<os::CounterGroup> tried = os::CounterGroup::open(events);
    if (!tried) return tried.error();
  }
  return region;
}

Status CountedRegion::prepare(std::size_t thread) {
  std::vector<os::CounterGroup>& groups = threads_[thread];
  groups.clear();
  for (const std::vector<os::CounterEvent>& events : events_) {
    Result<os::CounterGroup> group = os::CounterGroup::open(events);
    if (!group) return group.error();
    groups.push_back(std::move(*group));
  }
  return Done{};
}

void CountedRegion::begin(std::size_t thread) {
  for (os::CounterGroup& group : threads_[thread])
    group.start();
}

void CountedRegion::end(std::size_t thread) {
  std::vector<os::CounterGroup>& groups = threads_[thread];
  for (auto group = groups.rbegin(); group != groups.rend(); ++group)
    group->stop();
}

Result<std::vector<Counted>> CountedRegion::counted() const {
  std::vector<Counted> all;
  for (std::size_t group = 0; group < names_.size(); ++group) {
    const std::size_t first = all.size();
    for (const std::string& name : names_[group])
      all.push_back({name, 0, 1});
    for (const std::vector<os::CounterGroup>& groups : threads_) {
      Result<os::CounterReading> seen = groups[group].read();
      if (!seen) return seen.error();
      const double share = seen->wanted_ns == 0 ? 0
                                                : static_cast<double>(seen->counted_ns) /
                                                      static_cast<double>(seen->wanted_ns);
      for (std::size_t i = 0; i < names_[group].size(); ++i) {
        Counted& sum = all[first + i];
        if (share > 0) sum.value += static_cast<double>(seen->values[i]) / share;
        sum.share = std::min(sum.share, share);
      }
    }
  }
  return all;
}

} // namespace nearfar::bench
