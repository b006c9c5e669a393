#include "crash/explorer.hpp"

#include <doctest/doctest.h>
#include <string_view>

#include "base/random.hpp"
#include "crash/test_words.hpp"
#include "crash/workload.hpp"
#include "test_support.hpp"

using namespace nearfar;
using namespace nearfar::crash;
using storelog::Site;

namespace {

/// What a variant of the toy leaves out or adds.
enum class Fault {
  none,
  node_flush,
  late_log,
  logged_afterwards,
  node_fence,
  head_flush,
  log,
  log_fence,
  recovery_order,
  endless_recovery,
  unreported,
};

unsigned line_of_node, line_of_head, line_of_total, line_of_early_total;

/// A stack of (key, value) nodes and the total of its keys, kept by a one-entry undo log.
/// Calls the hooks for every access, as instrumentation does.
class Toy final : public Subject {
public:
  explicit Toy(Fault fault) : fault_(fault) {}

  Status create(std::byte* pool, std::size_t) override {
    words_ = reinterpret_cast<std::uint64_t*>(pool);
    words_[next_free] = first_node;
    next_ = first_node;
    return Done{};
  }
  Status apply(const Operation& operation) override {
    const std::uint64_t node = next_;
    next_ += 8;
    set(node, operation.key);
    set(node + 1, operation.value);
    set(node + 2, get(head));
    line_of_node = __LINE__ - 1;
    const bool late = fault_ == Fault::late_log && node >= first_node + 8 * 18;
    if (fault_ != Fault::node_flush) storelog::flush(&words_[node], 24);
    const std::uint64_t old = get(total);
    if (fault_ == Fault::logged_afterwards) set(total, old + operation.key);
    line_of_early_total = __LINE__ - 1;
    // The total's old value, then the mark that it is valid, in one line.
    if (fault_ != Fault::log && !late && storelog::log(&words_[total], 8)) {
      set(log_value, get(total));
      set(log_valid, node);
      storelog::flush(&words_[log_value], 16);
    }
    if (fault_ != Fault::log_fence && fault_ != Fault::node_fence) storelog::fence();
    set(total, old + operation.key);
    line_of_total = __LINE__ - 1;
    storelog::flush(&words_[total], 8);
    if (fault_ == Fault::node_fence) {
      // One fence for all: the total can be there before its log.
    } else {
      storelog::fence();
    }
    set(head, node);
    line_of_head = __LINE__ - 1;
    if (fault_ != Fault::head_flush) storelog::flush(&words_[head], 8);
    storelog::fence();
    if (fault_ == Fault::unreported) words_[log_value + 8] = 1;
    return Done{};
  }
  void apply_to_model(const Operation& operation, Contents& model) const override {
    model.emplace_back(operation.key, operation.value);
  }
  const char* open(std::byte* pool, std::size_t, const Moment&) override {
    words_ = reinterpret_cast<std::uint64_t*>(pool);
    while (fault_ == Fault::endless_recovery && get(head) != 0) {
    }
    const std::uint64_t valid = get(log_valid);
    if (valid != 0 && get(head) != valid) { // the operation did not end: the total goes back
      if (fault_ == Fault::recovery_order) set(log_valid, 0);
      set(total, get(log_value));
      storelog::flush(&words_[total], 8);
      storelog::fence();
      set(log_valid, 0);
      storelog::flush(&words_[log_valid], 8);
      storelog::fence();
    }
    return nullptr;
  }
  const char* contents(Contents& found) override {
    std::uint64_t sum = 0;
    for (std::uint64_t node = get(head); node != 0; node = get(node + 2)) {
      found.emplace_back(get(node), get(node + 1));
      sum += get(node);
    }
    return sum == get(total) ? nullptr : "the total is not the sum of the keys";
  }
  std::uint64_t leaked_bytes() override { return 0; }
  void close() override {}

private:
  static constexpr std::size_t head = 0, next_free = 1, total = 8, log_value = 16, log_valid = 17,
                               first_node = 32;

  std::uint64_t get(std::size_t word) {
    on_read(&words_[word], 8);
    return words_[word];
  }
  void set(std::size_t word, std::uint64_t value, Site site = Site::current()) {
    on_write(&words_[word], 8);
    words_[word] = value;
    storelog::store(&words_[word], 8, site);
  }

  Fault fault_;
  std::uint64_t* words_ = nullptr;
  std::uint64_t next_ = 0;
};

std::vector<Operation> inserts(std::size_t count) {
  std::vector<Operation> operations;
  Random random(1);
  for (std::size_t i = 0; i < count; ++i)
    operations.push_back({Operation::What::insert, random.below(1000) + 1, random.next()});
  return operations;
}

Exploration explore(Fault fault, const Options& options = {}, std::size_t count = 20) {
  Toy toy(fault);
  Arena arena(1 << 14);
  Result<Trace> trace = record_trace(toy, arena, inserts(count), false);
  REQUIRE(trace);
  return Explorer(toy, arena, *trace, options).explore();
}

const Finding* named(const Exploration& result, unsigned line, Missing missing) {
  for (const Finding& finding : result.findings)
    if (finding.store.line() == line && finding.missing == missing) return &finding;
  return nullptr;
}

} // namespace

TEST_CASE("a right structure survives every image, recovery crashed or not") {
  const Exploration result = explore(Fault::none);
  CHECK(result.violations == 0);
  CHECK(result.states_left == 0);
  CHECK(result.states > 100);
  CHECK(result.recovery_states > 20);
  CHECK(result.points >= 60); // three fences an operation
}

TEST_CASE("a missing flush of a node is named at the store") {
  const Exploration result = explore(Fault::node_flush);
  CHECK(result.violations > 0);
  CHECK(result.findings[0].missing == Missing::flush);
  CHECK(std::string_view(result.findings[0].store.file()).ends_with("explorer_test.cpp"));
  CHECK(result.findings[0].store.line() <= line_of_node);
  CHECK(result.findings[0].store.line() + 2 >= line_of_node);
  CHECK(result.findings[0].image.size() == 1 << 14);
}

TEST_CASE("an acknowledged operation that is not durable is lost") {
  const Exploration result = explore(Fault::head_flush);
  const Finding* finding = named(result, line_of_head, Missing::flush);
  REQUIRE(finding != nullptr);
  CHECK(finding->violations > 1);
}

TEST_CASE("a store in place of a program that logs nothing is named") {
  const Exploration result = explore(Fault::log);
  CHECK(named(result, line_of_total, Missing::in_place) != nullptr);
}

TEST_CASE("a store in place that was not logged is named") {
  const Exploration result = explore(Fault::late_log);
  CHECK(named(result, line_of_total, Missing::log) != nullptr);
}

TEST_CASE("a store that is logged only after it was made has its own finding") {
  const Exploration result = explore(Fault::logged_afterwards);
  CHECK(named(result, line_of_early_total, Missing::late_log) != nullptr);
}

TEST_CASE("a fence that does not keep the log before the store is named") {
  const Exploration result = explore(Fault::log_fence);
  CHECK(result.violations > 0);
  bool fence = false;
  for (const Finding& finding : result.findings)
    fence = fence || finding.missing == Missing::fence;
  CHECK(fence);
}

TEST_CASE("a recovery that is not crash-safe is found") {
  const Exploration result = explore(Fault::recovery_order);
  REQUIRE(result.violations > 0);
  CHECK(result.findings[0].during_recovery);
  Options without;
  without.crash_recovery = false;
  CHECK(explore(Fault::recovery_order, without).violations == 0);
}

TEST_CASE("a recovery that hangs is reported as that") {
  if (test::skipped_under_tsan("it defers SIGPROF for ever in a loop without calls")) return;
  Options quick;
  quick.limit_ms = 4;
  quick.violations = 1;
  const Exploration result = explore(Fault::endless_recovery, quick, 1);
  REQUIRE(result.violations > 0);
  CHECK(result.findings[0].failure == Failure::hung);
}

TEST_CASE("on eADR flushes are not missed, logs are") {
  Options eadr;
  eadr.loss = CacheLoss::none;
  CHECK(explore(Fault::none, eadr).violations == 0);
  CHECK(explore(Fault::node_flush, eadr).violations == 0);
  CHECK(explore(Fault::log_fence, eadr).violations == 0);
  CHECK(explore(Fault::log, eadr).violations > 0);
}

/// A flag and what it announces, written by one store of 16 bytes.
class Flagged final : public Words {
public:
  Status apply(const Operation& operation) override {
    words_[0] = 1;
    words_[1] = operation.value;
    storelog::store(words_, 16);
    line_of_flag = __LINE__ - 1;
    return Done{};
  }
  const char* contents(Contents&) override {
    on_read(words_, 16);
    return words_[0] != 0 && words_[1] == 0 ? "the flag is there, but not the value" : nullptr;
  }

  unsigned line_of_flag = 0;
};

TEST_CASE("on eADR a store that can be torn is named as that") {
  Flagged subject;
  Arena arena(4096);
  Result<Trace> trace = record_trace(subject, arena, mixed_operations(1, 1, false), false);
  REQUIRE(trace);
  for (const bool read_all : {false, true}) {
    Options eadr;
    eadr.loss = CacheLoss::none;
    eadr.read_all = read_all;
    const Exploration result = Explorer(subject, arena, *trace, eadr).explore();
    CHECK(result.violations == 1);
    CHECK(named(result, subject.line_of_flag, Missing::torn) != nullptr);
  }
}

TEST_CASE("where reads are unknown, every image is explored, each once") {
  Options all;
  all.read_all = true;
  const Exploration every = explore(Fault::none, all, 5);
  CHECK(every.violations == 0);
  CHECK(every.states_left == 0);
  CHECK(explore(Fault::node_flush, all, 5).violations > 0);
  const Exploration log = explore(Fault::log, all, 5);
  CHECK(named(log, line_of_total, Missing::in_place) != nullptr);
}

TEST_CASE("a budget is kept, and images left out are reported") {
  Options few;
  few.budget = 10;
  const Exploration result = explore(Fault::none, few);
  CHECK(result.states == 10);
  CHECK(result.states_left > 0);
}

TEST_CASE("a budget looks at the whole log before it looks closely") {
  Options all;
  all.read_all = true;
  const std::uint64_t everything = explore(Fault::none, all).states;
  all.budget = everything * 3 / 4;
  const Exploration some = explore(Fault::none, all);
  CHECK(some.states == all.budget);
  CHECK(some.states_left > 0);
  const Exploration late = explore(Fault::late_log, all);
  REQUIRE(!late.findings.empty());
  CHECK(late.findings[0].acknowledged >= 18);
  CHECK(named(late, line_of_total, Missing::log) != nullptr);
}

TEST_CASE("a store that was not reported is refused") {
  Toy toy(Fault::unreported);
  Arena arena(1 << 14);
  CHECK(!record_trace(toy, arena, inserts(3), false));
}

TEST_CASE("a failing image fails again when replayed") {
  Toy toy(Fault::head_flush);
  Arena arena(1 << 14);
  Result<Trace> trace = record_trace(toy, arena, inserts(5), false);
  REQUIRE(trace);
  Explorer explorer(toy, arena, *trace, {});
  const Exploration result = explorer.explore();
  REQUIRE(!result.findings.empty());
  const Finding& finding = result.findings[0];
  const Finding again = explorer.replay(finding.image, finding.acknowledged, finding.in_flight);
  CHECK(again.failure == finding.failure);
}
