#include "sim/policy_evaluation.hpp"

#include <algorithm>

#include "base/parallel_for.hpp"

namespace nearfar::sim {

namespace {

/// Evaluates one policy on a trace.
class PolicyEvaluator {
public:
  static Result<PolicyEvaluator> create(const PolicySetup& what, double instruction_ps) {
    Result<Placer> placer = Placer::create(what.plan);
    if (!placer) return placer.error();
    Result<trace::StallModel> costs = trace::StallModel::create(what.placing);
    if (!costs) return costs.error();
    return PolicyEvaluator(std::move(*placer), std::move(*costs), instruction_ps);
  }

  PolicyOutcome run(const trace::ThinnedTrace& sampled, const trace::TouchLog& touches) {
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
    const double expected_migration_ns = migration_ns_ / static_cast<double>(sampled.every());
    result_.cost.time_ns =
        std::max(result_.cost.time_ns + expected_migration_ns - sampled_migration_ns_, 0.0);
    result_.moved_pages = placer_.moved_pages();
    result_.far_pages = placer_.pages(false);
    return std::move(result_);
  }

private:
  PolicyEvaluator(Placer placer, trace::StallModel costs, double instruction_ps)
      : placer_(std::move(placer)), costs_(std::move(costs)), instruction_ps_(instruction_ps) {}

  /// Places the records between two blocks of the sample. They have no cost.
  void touch(const trace::TouchLog& touches, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < std::min(to, touches.size()); ++i)
      place(touches[i].line_and_write >> 1, (touches[i].line_and_write & 1) != 0,
            touches[i].instructions);
  }

  struct Placed {
    PlacedAccess access;
    trace::Traffic traffic;
    Time stall = 0;
    bool filled = false;
  };

  Placed place(std::uint64_t line, bool writes, std::uint64_t instructions) {
    Request request;
    request.address = line * line_bytes;
    request.write = writes;
    now_ = std::max(now_, static_cast<Time>(static_cast<double>(instructions) * instruction_ps_));
    moved_.clear();
    Placed placed;
    placed.access = placer_.place(request, now_, moved_, placed.stall);
    migration_ns_ += static_cast<double>(placed.stall) / 1000;
    ++(placed.access.near ? result_.near_lines : result_.far_lines);
    // memory_mode: a write that misses first reads its line from far memory.
    placed.filled = writes && !placed.access.write;
    for (const PlacedAccess& moved : moved_)
      ++(moved.write ? placed.traffic.written : placed.traffic.read)[moved.near ? 0 : 1];
    if (placed.filled) ++placed.traffic.read[placed.access.near ? 0 : 1];
    result_.far_written += placed.traffic.written[1] + (placed.access.write && !placed.access.near);
    return placed;
  }

  void take(const trace::Record& record, std::uint32_t site) {
    const Placed placed = place(record.line, trace::writes(record.kind), record.instructions);
    sampled_migration_ns_ += static_cast<double>(placed.stall) / 1000;
    if (!moved_.empty() || placed.filled)
      costs_.move(record, site, placed.traffic, static_cast<double>(placed.stall) / 1000);
    if (!placed.filled) costs_.take(record, site, placed.access.near ? 0 : 1);
  }

  Placer placer_;
  trace::StallModel costs_;
  double instruction_ps_;
  Time now_ = 0;
  double migration_ns_ = 0;         ///< kernel time of all migrations
  double sampled_migration_ns_ = 0; ///< part of it in the sample
  std::vector<PlacedAccess> moved_;
  PolicyOutcome result_;
};

} // namespace

Result<std::vector<PolicyOutcome>> evaluate_policies(const trace::ThinnedTrace& sampled,
                                                     std::span<const PolicySetup> policies,
                                                     double instruction_ps,
                                                     const trace::TouchLog& touches) {
  std::vector<PolicyEvaluator> evaluators;
  for (const PolicySetup& policy : policies) {
    Result<PolicyEvaluator> made = PolicyEvaluator::create(policy, instruction_ps);
    if (!made) return made.error();
    evaluators.push_back(std::move(*made));
  }
  std::vector<PolicyOutcome> made(evaluators.size());
  parallel_for(evaluators.size(),
               [&](std::size_t i) { made[i] = evaluators[i].run(sampled, touches); });
  return made;
}

} // namespace nearfar::sim
