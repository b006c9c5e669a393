#include "sim/follow.hpp"

#include <algorithm>

#include "base/share_out.hpp"
#include "trace/reader.hpp"

namespace nearfar::sim {

namespace {

/// One policy on its way through a trace.
class Follower {
public:
  static Result<Follower> create(const Following& what, double instruction_ps) {
    Result<Placer> placer = Placer::create(what.plan);
    if (!placer) return placer.error();
    Result<trace::Costs> costs = trace::Costs::create(what.placing);
    if (!costs) return costs.error();
    return Follower(std::move(*placer), std::move(*costs), instruction_ps);
  }

  void take(std::span<const trace::Record> block, const trace::Tables& tables, bool counts) {
    if (!counts) costs_.pass_by();
    for (const trace::Record& record : block)
      take(record, tables.objects[record.object].site, counts);
  }

  Followed finish(std::uint64_t instructions, std::size_t sites) {
    told_.cost = costs_.finish(instructions, sites);
    told_.moved_pages = placer_.moved_pages();
    told_.far_pages = placer_.pages(false);
    return std::move(told_);
  }

private:
  Follower(Placer placer, trace::Costs costs, double instruction_ps)
      : placer_(std::move(placer)), costs_(std::move(costs)), instruction_ps_(instruction_ps) {}

  void take(const trace::Record& record, std::uint32_t site, bool counts) {
    const bool writes = trace::writes(record.kind);
    Request request;
    request.address = record.line * line_bytes;
    request.write = writes;
    now_ = std::max(now_,
                    static_cast<Time>(static_cast<double>(record.instructions) * instruction_ps_));
    moved_.clear();
    Time held = 0;
    const Spot spot = placer_.place(request, now_, moved_, held);
    ++(spot.near ? told_.near_lines : told_.far_lines);
    // A cache of lines answers a write that misses it with a read of what it displaces.
    const bool filled = writes && !spot.write;
    trace::Traffic traffic;
    for (const Spot& line : moved_)
      ++(line.write ? traffic.written : traffic.read)[line.near ? 0 : 1];
    if (filled) ++traffic.read[spot.near ? 0 : 1];
    told_.far_written += traffic.written[1] + (spot.write && !spot.near);
    if (!counts) return;
    if (!moved_.empty() || filled)
      costs_.move(record, site, traffic, static_cast<double>(held) / 1000);
    if (!filled) costs_.take(record, site, spot.near ? 0 : 1);
  }

  Placer placer_;
  trace::Costs costs_;
  double instruction_ps_;
  Time now_ = 0;
  std::vector<Spot> moved_;
  Followed told_;
};

} // namespace

Result<std::vector<Followed>> follow(const char* path, std::span<const Following> policies,
                                     double instruction_ps, std::uint64_t every) {
  Result<trace::Reader> reader = trace::Reader::open(path);
  if (!reader) return reader.error();
  std::vector<Follower> followers;
  for (const Following& policy : policies) {
    Result<Follower> made = Follower::create(policy, instruction_ps);
    if (!made) return made.error();
    followers.push_back(std::move(*made));
  }
  std::uint64_t number = 0;
  for (auto block = reader->next(); !block.empty(); block = reader->next()) {
    const bool counts = number++ % every == 0;
    share_out(followers.size(),
              [&](std::size_t i) { followers[i].take(block, reader->tables(), counts); });
  }
  const std::uint64_t behind = every > 1 ? 0 : reader->totals()[trace::Total::instructions];
  std::vector<Followed> made;
  for (Follower& follower : followers)
    made.push_back(follower.finish(behind, reader->tables().sites.size()));
  return made;
}

} // namespace nearfar::sim
