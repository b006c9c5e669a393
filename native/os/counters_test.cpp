#include "os/counters.hpp"

#include <array>
#include <doctest/doctest.h>
#include <linux/perf_event.h>

#include "os/pages.hpp"
#include "test_support.hpp"

using namespace nearfar;

namespace {

constexpr os::CounterEvent page_faults{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0};
constexpr os::CounterEvent task_clock{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, 0};

} // namespace

TEST_CASE("a group counts what lies between start and stop, and nothing else") {
  const std::array events{page_faults, task_clock};
  Result<os::CounterGroup> group = os::CounterGroup::open(events);
  if (!group) { // a kernel that permits nothing says so
    CHECK(group.error().code == Errc::no_permission);
    return;
  }
  constexpr std::size_t pages = 64;
  auto before = os::map_range(pages * 4096, os::PageSize::small_4k, -1, false);
  auto inside = os::map_range(pages * 4096, os::PageSize::small_4k, -1, false);
  auto after = os::map_range(pages * 4096, os::PageSize::small_4k, -1, false);
  REQUIRE((before && inside && after));
  os::prefault(*before);
  group->start();
  os::prefault(*inside);
  group->stop();
  os::prefault(*after);
  Result<os::CounterReading> seen = group->read();
  REQUIRE(seen);
  REQUIRE(seen->values.size() == events.size());
  CHECK(seen->values[0] >= pages);
  if (!test::skipped_under_tsan("its shadow memory causes more page faults"))
    CHECK(seen->values[0] < 2 * pages);
  CHECK(seen->values[1] > 0);
  CHECK(seen->counted_ns > 0);
  CHECK(seen->counted_ns <= seen->wanted_ns);
}

TEST_CASE("libpfm4 knows software events by name, and says what it does not know") {
  Result<os::CounterEvent> event = os::find_counter("perf::PERF_COUNT_SW_PAGE_FAULTS");
  if (!event) {
    CHECK(event.error().code == Errc::unsupported); // built without it
    return;
  }
  CHECK(event->type == page_faults.type);
  CHECK(event->config == page_faults.config);
  Result<os::CounterEvent> none = os::find_counter("NO_SUCH_EVENT");
  REQUIRE(!none);
  CHECK(none.error().code == Errc::not_found);
}

TEST_CASE("a group of no events is refused") {
  CHECK(os::CounterGroup::open({}).error().code == Errc::bad_input);
}
