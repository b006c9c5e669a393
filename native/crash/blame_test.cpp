// Which store the explorer blames for an image that fails.
#include <doctest/doctest.h>

#include "crash/explorer.hpp"
#include "crash/test_words.hpp"
#include "crash/workload.hpp"

using namespace nearfar;
using namespace nearfar::crash;
using storelog::Site;

namespace {

/// The first operation fills a node, which needs no log, and links it without one.
class UnloggedLink final : public Words {
public:
  Status apply(const Operation&) override {
    const bool first = words_[node] == 0;
    if (storelog::log(&words_[first ? count : link], 8)) set(record);
    if (first) set(node, 1, Site("link.c", 1));
    set(link, 1, Site("link.c", 2));
    set(count);
    persist(node, count);
    return Done{};
  }
  const char* contents(Contents&) override {
    return words_[link] != 0 && words_[node] == 0 ? "the link leads to nothing" : nullptr;
  }

private:
  static constexpr unsigned node = 0, link = 8, count = 16, record = 24;
};

} // namespace

TEST_CASE("an unlogged store is blamed, not the node to which it refers") {
  UnloggedLink subject;
  Arena arena(4096);
  Result<Trace> trace = record_trace(subject, arena, mixed_operations(2, 1, false), false);
  REQUIRE(trace);
  Options all;
  all.read_all = true;
  const Exploration result = Explorer(subject, arena, *trace, all).explore();
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].store.line() == 2);
  CHECK(result.findings[0].missing == Missing::log);
}
