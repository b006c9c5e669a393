#include "sim/policy_evaluation.hpp"

#include <doctest/doctest.h>
#include <string>

#include "os/file.hpp"
#include "test_support.hpp"
#include "trace/thinned_trace.hpp"
#include "trace/writer.hpp"

using namespace nearfar;
using namespace nearfar::sim;

namespace {

constexpr std::uint64_t pages = 64;
constexpr std::uint64_t page = 4096;
constexpr std::uint64_t rounds = 40;

/// A trace in a temporary file: repeated rounds over some pages; each read depends on the previous
/// one. With `written`, each line is written back immediately.
class RoundsTrace {
public:
  explicit RoundsTrace(std::uint64_t gap, bool written = false, std::uint64_t count = rounds) {
    Result<os::File> file = os::create_new(path.c_str());
    REQUIRE(file);
    trace::TraceWriter writer(file->fd(), trace::Header{});
    writer.thread(0);
    trace::Site site;
    site.kind = trace::SiteKind::heap;
    trace::Object object;
    object.site = writer.site(site);
    object.bytes = pages * page;
    const std::uint32_t number = writer.object(object);
    std::uint64_t instructions = 0;
    for (std::uint64_t i = 0; i < count * pages; ++i) {
      const std::uint64_t line = (i % pages) * lines_a_page;
      instructions += gap;
      writer.record(
          {line, 1, instructions, number, i > 0 ? 1u + written : 0u, 0, trace::RecordKind::load});
      if (written)
        writer.record({line, 0, instructions, number, 0, 0, trace::RecordKind::write_back});
    }
    writer.totals[trace::Total::instructions] = instructions;
    REQUIRE(writer.finish());
  }

  test::Folder folder = test::Folder::quick();
  std::string path = folder.path("trace");
};

PolicySetup policy(PlacementRule rule, std::uint64_t near_pages) {
  PolicySetup made;
  made.plan.rule = rule;
  made.plan.near_bytes = near_pages * page;
  made.plan.near_weight = made.plan.far_weight = 1;
  made.placing.memories[0] = {100, 1, 1, 0, 0, 21};
  made.placing.memories[1] = {300, 3, 3, 0, 0, 21};
  made.placing.core = {1, 256, 10, 1536, 12};
  return made;
}

trace::ThinnedTrace sample(const RoundsTrace& trace) {
  Result<trace::ThinnedTrace> sampled = trace::ThinnedTrace::read(trace.path.c_str(), 1 << 20);
  REQUIRE(sampled);
  return std::move(*sampled);
}

PolicyOutcome outcome_of(const RoundsTrace& trace, const PolicySetup& what) {
  Result<std::vector<PolicyOutcome>> found = evaluate_policies(sample(trace), {&what, 1}, 1000);
  REQUIRE(found);
  return (*found)[0];
}

} // namespace

TEST_CASE("first touch: pages that fit are near, the others stay far") {
  const RoundsTrace trace(1);
  const PolicyOutcome half = outcome_of(trace, policy(PlacementRule::first_touch, pages / 2));
  CHECK(half.near_lines == rounds * pages / 2);
  CHECK(half.far_lines == rounds * pages / 2);
  CHECK(half.moved_pages == 0);
  CHECK(half.cost.time_ns == doctest::Approx(rounds * pages * 200.0).epsilon(0.02));
  const PolicyOutcome all = outcome_of(trace, policy(PlacementRule::first_touch, pages));
  CHECK(all.cost.time_ns == doctest::Approx(rounds * pages * 100.0).epsilon(0.02));
}

TEST_CASE("interleave: the fraction of near lines is that of the weights") {
  const RoundsTrace trace(1);
  PolicySetup what = policy(PlacementRule::interleave, 0);
  what.plan.near_weight = 3;
  CHECK(outcome_of(trace, what).near_lines == rounds * pages * 3 / 4);
}

TEST_CASE("memory mode: rounds over more lines than near memory holds always miss it") {
  const RoundsTrace trace(1);
  const PolicyOutcome found = outcome_of(trace, policy(PlacementRule::memory_mode, pages / 2));
  CHECK(found.near_lines == 0);
  CHECK(found.cost.time_ns >= rounds * pages * 300.0);
  const PolicyOutcome held = outcome_of(trace, policy(PlacementRule::memory_mode, pages));
  CHECK(held.far_lines == pages);
}

TEST_CASE("memory mode: dirty lines are written to far memory when they are evicted") {
  const RoundsTrace trace(1, true);
  const PolicyOutcome found = outcome_of(trace, policy(PlacementRule::memory_mode, pages / 2));
  CHECK(found.far_written == (rounds - 1) * pages + pages / 2);
}

TEST_CASE("hot pages: migrations stall the program and transfer lines of both memories") {
  const RoundsTrace trace(100'000); // 100 us a read: the rate limit allows all moves
  PolicySetup what = policy(PlacementRule::hot_pages, pages / 2);
  what.plan.hot_touches = 1;
  const PolicyOutcome found = outcome_of(trace, what);
  REQUIRE(found.moved_pages > pages);
  const double moving = static_cast<double>(found.moved_pages) * 2000.0;
  CHECK(found.cost.stall_ns >= moving);
  CHECK(found.far_written == found.moved_pages / 2 * lines_a_page);
}

TEST_CASE("the cost of a policy that moves nothing is that of the fixed placement") {
  const RoundsTrace trace(50);
  PolicySetup what = policy(PlacementRule::first_touch, 2 * pages);
  const trace::ThinnedTrace sampled = sample(trace);
  Result<trace::StallModel> costs = trace::StallModel::create(what.placing);
  REQUIRE(costs);
  std::vector<trace::StallModel> accounts;
  accounts.push_back(std::move(*costs));
  CHECK(outcome_of(trace, what).cost.time_ns ==
        doctest::Approx(sampled.costs(std::move(accounts))[0].time_ns));
}

TEST_CASE("records between the blocks of a sample are placed, too") {
  const RoundsTrace trace(1, false, 16 * trace::block_records / pages);
  Result<trace::ThinnedTrace> part =
      trace::ThinnedTrace::read(trace.path.c_str(), 2 * trace::block_records);
  Result<trace::ThinnedTrace> all = trace::ThinnedTrace::read(trace.path.c_str(), 1 << 30);
  REQUIRE(part);
  REQUIRE(all);
  REQUIRE(part->every() == 8);
  trace::TouchLog touches;
  for (const std::vector<trace::Record>& block : all->blocks())
    for (const trace::Record& record : block)
      touches.push_back({record.instructions, record.line << 1});
  for (const PlacementRule rule :
       {PlacementRule::first_touch, PlacementRule::memory_mode, PlacementRule::hot_pages}) {
    const PolicySetup what = policy(rule, pages / 2);
    Result<std::vector<PolicyOutcome>> a = evaluate_policies(*part, {&what, 1}, 1000, touches);
    Result<std::vector<PolicyOutcome>> b = evaluate_policies(*all, {&what, 1}, 1000);
    REQUIRE(a);
    REQUIRE(b);
    CHECK((*a)[0].near_lines == (*b)[0].near_lines);
    CHECK((*a)[0].far_lines == (*b)[0].far_lines);
    CHECK((*a)[0].moved_pages == (*b)[0].moved_pages);
    CHECK((*a)[0].cost.time_ns * 8 == doctest::Approx((*b)[0].cost.time_ns).epsilon(0.02));
  }
}

TEST_CASE("an invalid policy is refused") {
  const RoundsTrace trace(1);
  const PolicySetup none = policy(PlacementRule::memory_mode, 0);
  CHECK(!evaluate_policies(sample(trace), {&none, 1}, 1000));
}
