#include "sim/controller.hpp"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>

using namespace nearfar;
using namespace nearfar::sim;

namespace {

void refused(const ControllerSettings& settings, const char* what) {
  const Result<Controller> made = make_controller(settings);
  CAPTURE(what);
  REQUIRE(!made);
  CHECK(made.error().code == Errc::bad_input);
  CHECK(std::strstr(made.error().what, what));
}

} // namespace

TEST_CASE("default settings are those of a default controller") {
  Result<Controller> made = make_controller({});
  REQUIRE(made);
  const Controller expected;
  CHECK(made->page == expected.page);
  CHECK(made->timeout == expected.timeout);
  CHECK(made->scheduler == expected.scheduler);
  CHECK(made->row_hit_cap == expected.row_hit_cap);
  CHECK(made->drain_from == expected.drain_from);
  CHECK(made->drain_to == expected.drain_to);
  CHECK(made->drain_idle == expected.drain_idle);
  CHECK(made->mapping == expected.mapping);
  CHECK(made->power_down_after == never);
  CHECK(made->self_refresh_after == never);
}

TEST_CASE("settings are read by their names") {
  ControllerSettings settings;
  settings.page_policy = "timeout";
  settings.timeout_ns = 12.5;
  settings.scheduler = "fcfs";
  settings.mapping = "rochrababgco";
  settings.power_down_after_ns = 0;
  settings.self_refresh_after_ns = 1000;
  Result<Controller> made = make_controller(settings);
  REQUIRE(made);
  CHECK(made->page == PagePolicy::timeout);
  CHECK(made->timeout == 12'500);
  CHECK(made->scheduler == Scheduler::fcfs);
  CHECK(made->mapping[1] == AddressField::channel);
  CHECK(made->power_down_after == 0);
  CHECK(made->self_refresh_after == 1'000'000);
}

TEST_CASE("an unknown or contradictory setting is refused by its name") {
  refused({.page_policy = "shut"}, "page policy 'shut'");
  refused({.scheduler = ""}, "scheduler ''");
  refused({.mapping = "robaco"}, "address mapping 'robaco'");
  for (const double ns : {-1.0, 1e10, std::nan("")}) {
    refused({.timeout_ns = ns}, "a row is closed");
    refused({.power_down_after_ns = ns}, "powers down");
    refused({.self_refresh_after_ns = ns}, "enters self-refresh");
  }
  refused({.drain_from = 8, .drain_to = 8}, "write drain");
  refused({.drain_from = 20, .drain_idle = 21}, "write drain");
  refused({.scheduler = "fcfs", .row_hit_cap = 4}, "cap");
}
