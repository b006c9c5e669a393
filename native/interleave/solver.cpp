#include "interleave/solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "interleave/lower_bound.hpp"

namespace nearfar::interleave {

namespace {

/// Relative difference of times that counts as none.
constexpr double equal = 1e-10;

bool is_amount(double value) { return value >= 0 && std::isfinite(value); }

bool is_valid(const Site& site) {
  return is_amount(site.near_stall_ns) && is_amount(site.far_stall_ns) &&
         is_amount(site.read_bytes) && is_amount(site.write_bytes) && is_amount(site.size_bytes);
}

bool is_valid(const Demand& fixed) {
  return is_amount(fixed.near_stall_ns) && is_amount(fixed.far_stall_ns) &&
         is_amount(fixed.near_reads) && is_amount(fixed.near_writes) &&
         is_amount(fixed.far_reads) && is_amount(fixed.far_writes);
}

class Search {
public:
  Search(const PlacementTime& times, std::vector<Site> sites, unsigned steps,
         std::uint64_t max_nodes, const Demand& fixed)
      : times_(times), sites_(std::move(sites)), fixed_(fixed), bound_(times, sites_),
        steps_(steps), nodes_left_(max_nodes), levels_(sites_.size()), best_(sites_.size()),
        size_left_(sites_.size() + 1) {
    for (std::size_t i = sites_.size(); i-- > 0;)
      size_left_[i] = size_left_[i + 1] + sites_[i].size_bytes;
  }

  /// The best placement, from all starts of a local search and then by branch and bound.
  bool run() {
    for (unsigned start = 0; start <= steps_; ++start)
      improve(std::vector<unsigned>(sites_.size(), start));
    improve(filled_near());
    descend(0, fixed_, 0);
    if (found_) prefer_far();
    return found_;
  }

  const std::vector<unsigned>& best() const { return best_; }
  double best_ns() const { return best_ns_; }
  bool exact() const { return !stopped_; }

private:
  double near_share(unsigned level) const { return static_cast<double>(level) / steps_; }

  double time_of(const std::vector<unsigned>& levels) const {
    return times_.time_ns(demand_of(sites_, levels, steps_, fixed_));
  }
  bool is_possible(const std::vector<unsigned>& levels) const {
    return fits(times_, sites_, levels, steps_);
  }

  void keep(const std::vector<unsigned>& levels, double time_ns) {
    if (!(time_ns < best_ns_)) return;
    found_ = true;
    best_ = levels;
    best_ns_ = time_ns;
  }

  /// Sites near in their order, as far as they fit; the last one in part.
  std::vector<unsigned> filled_near() const {
    std::vector<unsigned> levels(sites_.size(), 0);
    double room = times_.near().capacity_bytes;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const double size = sites_[i].size_bytes;
      const double part = size > 0 ? std::clamp(room / size, 0.0, 1.0) : 1;
      levels[i] = static_cast<unsigned>(part * steps_);
      room -= size * near_share(levels[i]);
    }
    return levels;
  }

  /// Changes one site, then one pair of sites, while that reduces the time.
  void improve(std::vector<unsigned> levels) {
    if (!is_possible(levels)) return;
    double time_ns = time_of(levels);
    keep(levels, time_ns);
    for (bool better = true; better;) {
      better = change_one(levels, time_ns) || change_two(levels, time_ns);
      keep(levels, time_ns);
    }
  }

  bool change_one(std::vector<unsigned>& levels, double& time_ns) const {
    bool better = false;
    for (unsigned& level : levels) {
      const unsigned before = level;
      unsigned chosen = before;
      for (level = 0; level <= steps_; ++level)
        if (level != before && accepts(levels, time_ns)) chosen = level;
      level = chosen;
      better = better || chosen != before;
    }
    return better;
  }

  /// One site up and another one down, by one step or by all.
  bool change_two(std::vector<unsigned>& levels, double& time_ns) const {
    bool better = false;
    for (std::size_t i = 0; i < levels.size(); ++i)
      for (std::size_t j = 0; j < levels.size(); ++j)
        for (const unsigned by : {1U, steps_}) {
          const unsigned up = std::min(by, steps_ - levels[i]), down = std::min(by, levels[j]);
          if (i == j || up == 0 || down == 0) continue;
          levels[i] += up;
          levels[j] -= down;
          if (accepts(levels, time_ns)) {
            better = true;
            continue;
          }
          levels[i] -= up;
          levels[j] += down;
        }
    return better;
  }

  bool accepts(const std::vector<unsigned>& levels, double& time_ns) const {
    if (!is_possible(levels)) return false;
    const double tried = time_of(levels);
    if (!(tried < time_ns * (1 - equal))) return false;
    time_ns = tried;
    return true;
  }

  void descend(std::size_t next, const Demand& decided, double near_bytes) {
    if (nodes_left_ == 0) {
      stopped_ = true;
      return;
    }
    --nodes_left_;
    if (next == sites_.size()) {
      keep(levels_, times_.time_ns(decided));
      return;
    }
    const unsigned around = best_[next]; // a better placement that is found changes best_
    for (unsigned i = 0; i <= steps_; ++i) {
      const unsigned level = nearest(around, i);
      const Site& site = sites_[next];
      const double near = near_bytes + site.size_bytes * near_share(level);
      if (!has_room(near, next + 1)) continue;
      Demand demand = decided;
      demand.add(site, near_share(level));
      if (bound_.reaches(demand, near, next + 1, best_ns_ * (1 - equal))) continue;
      levels_[next] = level;
      descend(next + 1, demand, near);
    }
  }

  /// Levels in the order of their distance from one.
  unsigned nearest(unsigned level, unsigned place) const {
    const unsigned below = std::min(level, steps_ - level);
    if (place <= 2 * below) return place % 2 == 1 ? level + (place + 1) / 2 : level - place / 2;
    return level < steps_ - level ? place : steps_ - place;
  }

  /// Whether the sites from `next` on can be placed if those before have `near` bytes near.
  bool has_room(double near, std::size_t next) const {
    const double decided = size_left_[0] - size_left_[next];
    return near <= times_.near().capacity_bytes && decided - near <= times_.far().capacity_bytes;
  }

  /// Moves data to far memory if that costs no time.
  void prefer_far() {
    for (unsigned& level : best_)
      for (unsigned lower = 0, before = level; lower < before; ++lower) {
        level = lower;
        if (is_possible(best_) && time_of(best_) <= best_ns_ * (1 + equal)) break;
        level = before;
      }
  }

  const PlacementTime& times_;
  const std::vector<Site> sites_;
  const Demand fixed_;
  LowerBound bound_;
  unsigned steps_;
  std::uint64_t nodes_left_;
  std::vector<unsigned> levels_, best_;
  std::vector<double> size_left_; ///< bytes of the sites from an index on
  double best_ns_ = std::numeric_limits<double>::infinity();
  bool found_ = false, stopped_ = false;
};

/// Sites with the largest stalls and traffic first: they decide most.
std::vector<std::size_t> by_weight(const PlacementTime& times, std::span<const Site> sites) {
  const double peak = times.near().latency.highest_peak() + times.far().latency.highest_peak();
  std::vector<std::size_t> order(sites.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto weight = [&](std::size_t i) {
    const Site& site = sites[i];
    return std::abs(site.far_stall_ns - site.near_stall_ns) +
           (site.read_bytes + site.write_bytes) * 1e9 / peak;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return weight(a) > weight(b); });
  return order;
}

} // namespace

Demand demand_of(std::span<const Site> sites, std::span<const unsigned> near_steps, unsigned steps,
                 const Demand& fixed) {
  Demand demand = fixed;
  for (std::size_t i = 0; i < sites.size(); ++i)
    demand.add(sites[i], static_cast<double>(near_steps[i]) / steps);
  return demand;
}

bool fits(const PlacementTime& times, std::span<const Site> sites,
          std::span<const unsigned> near_steps, unsigned steps) {
  double near = 0, far = 0;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const double share = static_cast<double>(near_steps[i]) / steps;
    near += sites[i].size_bytes * share;
    far += sites[i].size_bytes * (1 - share);
  }
  return near <= times.near().capacity_bytes && far <= times.far().capacity_bytes;
}

Result<Solution> solve(const PlacementTime& times, std::span<const Site> sites, unsigned steps,
                       std::uint64_t max_nodes, const Demand& fixed) {
  if (steps == 0 || !std::ranges::all_of(sites, [](const Site& site) { return is_valid(site); }) ||
      !is_valid(fixed))
    return Error::make(Errc::bad_input, "stalls, traffic and sizes of sites must be 0 or more")
        .try_next("correct the site");
  const std::vector<std::size_t> order = by_weight(times, sites);
  std::vector<Site> sorted;
  for (const std::size_t i : order)
    sorted.push_back(sites[i]);
  Search search(times, std::move(sorted), steps, max_nodes, fixed);
  if (!search.run())
    return Error::make(Errc::no_space, "no placement fits both memories and their bandwidths")
        .try_next("give more capacity, or a lower background load");
  Solution solution;
  solution.near_steps.resize(sites.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    solution.near_steps[order[i]] = search.best()[i];
  solution.demand = demand_of(sites, solution.near_steps, steps, fixed);
  solution.time_ns = times.time_ns(solution.demand);
  solution.exact = search.exact();
  return solution;
}

} // namespace nearfar::interleave
