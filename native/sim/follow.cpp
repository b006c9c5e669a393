#include "sim/follow.hpp"

#include <algorithm>

#include "base/share_out.hpp"

namespace nearfar::sim {

namespace {

/// Evaluates one policy on a trace.
class Follower {
public:
  static Result<Follower> create(const Following& what, double instruction_ps) {
    Result<Placer> placer = Placer::create(what.plan);
    if (!placer) return placer.error();
    Result<trace::StallModel> costs = trace::StallModel::create(what.placing);
    if (!costs) return costs.error();
    return Follower(std::move(*placer), std::move(*costs), instruction_ps);
  }

  Followed go(const trace::ThinnedTrace& sampled, const trace::TouchLog& touches) {
    std::size_t position = 0;
    for (std::size_t i = 0; i < sampled.blocks().size(); ++i) {
      const std::vector<trace::Record>& block = sampled.blocks()[i];
      const std::size_t begin = i * sampled.every() * trace::block_records;
      touch(touches, position, begin);
      position = begin + block.size();
      if (sampled.every() > 1) costs_.skip_records();
      for (const trace::Record& record : block)
        take(record, sampled.sites()[record.object]);
    }
    touch(touches, position, touches.size());
    const trace::TraceReader& reader = sampled.reader();
    const std::uint64_t behind =
        sampled.every() > 1 ? 0 : reader.totals()[trace::Total::instructions];
    result_.cost = costs_.finish(behind, reader.tables().sites.size());
    // Migrations come in bursts, which a sample may miss. The kernel time of all migrations is
    // known: it replaces that of the sample.
    const double sampled_held = held_ / static_cast<double>(sampled.every());
    result_.cost.time_ns = std::max(result_.cost.time_ns + sampled_held - charged_, 0.0);
    result_.moved_pages = placer_.moved_pages();
    result_.far_pages = placer_.pages(false);
    return std::move(result_);
  }

private:
  Follower(Placer placer, trace::StallModel costs, double instruction_ps)
      : placer_(std::move(placer)), costs_(std::move(costs)), instruction_ps_(instruction_ps) {}

  /// Places the records between two blocks of the sample. They have no cost.
  void touch(const trace::TouchLog& touches, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < std::min(to, touches.size()); ++i)
      place(touches[i].line_and_write >> 1, (touches[i].line_and_write & 1) != 0,
            touches[i].instructions);
  }

  struct Placed {
    Spot spot;
    trace::Traffic traffic;
    Time held = 0;
    bool filled = false;
  };

  Placed place(std::uint64_t line, bool writes, std::uint64_t instructions) {
    Request request;
    request.address = line * line_bytes;
    request.write = writes;
    now_ = std::max(now_, static_cast<Time>(static_cast<double>(instructions) * instruction_ps_));
    moved_.clear();
    Placed placed;
    placed.spot = placer_.place(request, now_, moved_, placed.held);
    held_ += static_cast<double>(placed.held) / 1000;
    ++(placed.spot.near ? result_.near_lines : result_.far_lines);
    // memory_mode: a write that misses first reads its line from far memory.
    placed.filled = writes && !placed.spot.write;
    for (const Spot& moved : moved_)
      ++(moved.write ? placed.traffic.written : placed.traffic.read)[moved.near ? 0 : 1];
    if (placed.filled) ++placed.traffic.read[placed.spot.near ? 0 : 1];
    result_.far_written += placed.traffic.written[1] + (placed.spot.write && !placed.spot.near);
    return placed;
  }

  void take(const trace::Record& record, std::uint32_t site) {
    const Placed placed = place(record.line, trace::writes(record.kind), record.instructions);
    charged_ += static_cast<double>(placed.held) / 1000;
    if (!moved_.empty() || placed.filled)
      costs_.move(record, site, placed.traffic, static_cast<double>(placed.held) / 1000);
    if (!placed.filled) costs_.take(record, site, placed.spot.near ? 0 : 1);
  }

  Placer placer_;
  trace::StallModel costs_;
  double instruction_ps_;
  Time now_ = 0;
  double held_ = 0, charged_ = 0; ///< kernel time of migrations in ns: all, and in the sample
  std::vector<Spot> moved_;
  Followed result_;
};

} // namespace

Result<std::vector<Followed>> follow(const trace::ThinnedTrace& sampled,
                                     std::span<const Following> policies, double instruction_ps,
                                     const trace::TouchLog& touches) {
  std::vector<Follower> followers;
  for (const Following& policy : policies) {
    Result<Follower> made = Follower::create(policy, instruction_ps);
    if (!made) return made.error();
    followers.push_back(std::move(*made));
  }
  std::vector<Followed> made(followers.size());
  share_out(followers.size(), [&](std::size_t i) { made[i] = followers[i].go(sampled, touches); });
  return made;
}

} // namespace nearfar::sim
