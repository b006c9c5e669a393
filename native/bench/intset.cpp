#include "bench/intset.hpp"

#include <algorithm>

#include "bench/intset_kind.hpp"

namespace nearfar::bench {

namespace {

const std::vector<IntsetKind>& kinds() {
#define NEARFAR_SET(name) name##_set(),
  static const std::vector<IntsetKind> all = {
#include "bench/sets.inc"
  };
#undef NEARFAR_SET
  return all;
}

/// Errors: bad_input (there is none of that name).
Result<const IntsetKind*> find(std::string_view name) {
  for (const IntsetKind& kind : kinds())
    if (kind.name == name) return &kind;
  std::string known;
  for (const IntsetKind& kind : kinds())
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  return Error::make(Errc::bad_input, "unknown set '%.*s'", static_cast<int>(name.size()),
                     name.data())
      .try_next("choose one of: %s", known.c_str());
}

bool by_libpmemobj(IntsetMedium medium) { return medium >= IntsetMedium::pmdk; }

/// nullptr where the set has no such version.
MakeSet version(const IntsetKind& kind, IntsetMedium medium) {
  switch (medium) {
  case IntsetMedium::pmdk: return kind.pmdk;
  case IntsetMedium::pmdk_atomic: return kind.pmdk_atomic;
  case IntsetMedium::pmdk_rp: return kind.pmdk_rp;
  default: return kind.ours;
  }
}

/// Every second key of the range in a random order.
std::vector<std::uint64_t> first_keys(const IntsetPlan& plan) {
  std::vector<std::uint64_t> keys(plan.entries);
  for (std::uint64_t i = 0; i < plan.entries; ++i)
    keys[i] = 1 + 2 * i;
  Random random(plan.seed);
  for (std::uint64_t i = plan.entries; i > 1; --i)
    std::swap(keys[i - 1], keys[random.below(i)]);
  return keys;
}

Status check(const IntsetPlan& plan, const IntsetKind& kind) {
  if (plan.entries == 0 || plan.entries > (std::uint64_t{1} << 32))
    return Error::make(Errc::bad_input, "a set of %llu entries cannot be made",
                       static_cast<unsigned long long>(plan.entries))
        .try_next("give --entries from 1 to 4294967296");
  if (plan.update_percent > 100)
    return Error::make(Errc::bad_input, "%u %% of updates are more than all operations",
                       plan.update_percent)
        .try_next("give --update from 0 to 100");
  if (plan.medium == IntsetMedium::dram)
    if (Status sound = check_counterpart(counterpart_tier(plan)); !sound) return sound;
  if (by_libpmemobj(plan.medium) && kind.pmdk == nullptr)
    return Error::make(Errc::bad_input, "the set %s has no version on libpmemobj", kind.name)
        .try_next("choose --structure hash");
  if (version(kind, plan.medium) == nullptr)
    return Error::make(Errc::bad_input, "only the hash set has several versions on libpmemobj")
        .try_next("choose --structure hash");
  return Done{};
}

} // namespace

Error inconsistent_set() {
  return Error::make(Errc::failed_check, "the set does not hold what was put in and not taken out")
      .try_next("report this with the command you ran");
}

/// The counterpart of a pool in a node's memory lies there too, all others in DRAM.
tier::Spec counterpart_tier(const IntsetPlan& plan) {
  return plan.tier.kind->maps == tier::Maps::memory ? plan.tier : tier::Spec{};
}

std::vector<std::string> intset_structures() {
  std::vector<std::string> names;
  for (const IntsetKind& kind : kinds())
    names.emplace_back(kind.name);
  return names;
}

IntsetBench::IntsetBench(const IntsetPlan& plan, std::unique_ptr<IntsetSubject> subject)
    : plan_(plan), subject_(std::move(subject)) {}
IntsetBench::IntsetBench(IntsetBench&&) noexcept = default;
IntsetBench::~IntsetBench() = default;

Result<IntsetBench> IntsetBench::create(const IntsetPlan& plan) {
  Result<const IntsetKind*> found = find(plan.structure);
  if (!found) return found.error();
  const IntsetKind& kind = **found;
  if (Status sound = check(plan, kind); !sound) return sound.error();
  Result<std::unique_ptr<IntsetSubject>> subject =
      version(kind, plan.medium)(plan, first_keys(plan));
  if (!subject) return subject.error();
  return IntsetBench(plan, std::move(*subject));
}

std::span<const std::byte> IntsetBench::pool() const { return subject_->pool(); }

Result<IntsetRun> IntsetBench::run(std::uint64_t budget_ns, MeasuredRegion* region) {
  return run_until({.budget_ns = budget_ns}, region);
}

Result<IntsetRun> IntsetBench::run_operations(std::uint64_t operations, MeasuredRegion* region) {
  return run_until({.operations = operations}, region);
}

Result<IntsetRun> IntsetBench::run_until(const IntsetEnd& end, MeasuredRegion* region) {
  Random random(plan_.seed++ + 0x5eed);
  return subject_->run(plan_, end, {region, 0}, random);
}

} // namespace nearfar::bench
