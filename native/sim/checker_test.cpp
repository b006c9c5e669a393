// The rules of specifications: each command is legal at clock N and illegal at clock N - 1. A clock
// is 1 ns.
#include "sim/checker.hpp"

#include <initializer_list>

#include "sim/test_devices.hpp"

using namespace nearfar;
using namespace nearfar::sim;

namespace {

constexpr Time clock_ps = 1000;

/// A command on a bank of rank, group, bank in group.
struct TestCommand {
  Time at;
  CommandType type;
  std::uint32_t rank = 0;
  std::uint32_t group = 0;
  std::uint32_t bank = 0;
  std::uint64_t row = 0;
};

std::vector<Violation> violations_of(const Device& device, std::vector<TestCommand> given,
                                     unsigned postponed = 0) {
  std::vector<Command> commands;
  const auto groups = static_cast<std::uint32_t>(device.organization.groups);
  const auto banks = static_cast<std::uint32_t>(device.organization.banks);
  for (const TestCommand& s : given)
    commands.push_back({s.at * clock_ps, s.type, false, 0, s.rank, s.group,
                        (s.rank * groups + s.group) * banks + s.bank, s.row});
  return check_timing(device, commands, postponed);
}

/// The last command is legal at `at`, and breaks `rule` one clock earlier, by one clock.
void legal_from(const Device& device, const char* rule, Time at, std::vector<TestCommand> given) {
  CAPTURE(rule);
  given.back().at = at;
  CHECK(violations_of(device, given).empty());
  given.back().at = at - 1;
  const std::vector<Violation> found = violations_of(device, given);
  REQUIRE(found.size() == 1);
  CHECK(found[0].rule == rule);
  CHECK(found[0].missing == clock_ps);
}

using enum CommandType;

} // namespace

TEST_CASE("one bank") {
  const Device d = ddr4();
  legal_from(d, "tRCD", 22, {{0, activate}, {0, CommandType::read}});
  legal_from(d, "tRCDWR", 22, {{0, activate}, {0, CommandType::write}});
  legal_from(d, "tRAS", 52, {{0, activate}, {0, precharge}});
  legal_from(d, "tRTP", 62, {{0, activate}, {50, CommandType::read}, {0, precharge}});
  legal_from(d, "tWR", 22 + 16 + 4 + 24, {{0, activate}, {22, CommandType::write}, {0, precharge}});
  legal_from(d, "tRP", 52 + 22, {{0, activate}, {52, precharge}, {0, activate}});
}

TEST_CASE("two banks of a rank") {
  const Device d = ddr4();
  legal_from(d, "tRRD", 4, {{0, activate}, {0, activate, 0, 1}});
  legal_from(d, "tRRDL", 8, {{0, activate}, {0, activate, 0, 0, 1}});
  legal_from(d, "tFAW", 34,
             {{0, activate, 0, 0},
              {8, activate, 0, 1},
              {16, activate, 0, 2},
              {24, activate, 0, 3},
              {0, activate, 0, 0, 1}});
}

TEST_CASE("33 activates of a rank, of which at most 32 lie in t32AW") {
  Figures figures = ddr4_figures();
  for (auto& [name, figure] : figures)
    if (name == "banks") figure = 16;
  figures.emplace_back("t32AW", 300);
  std::vector<TestCommand> given;
  for (std::uint32_t i = 0; i < 33; ++i)
    given.push_back({Time{9} * i, activate, 0, i % 4, i / 4});
  legal_from(made("gddr", MemoryKind::commands, figures), "t32AW", 300, given);
}

TEST_CASE("a refresh of a set blocks only the banks of that set") {
  Figures figures = ddr4_figures();
  figures.emplace_back("refresh_sets", 4);
  const Device d = made("sets", MemoryKind::commands, figures);
  // The set of bank 0 is due after a quarter of tREFI, that of bank 1 after a half.
  const Time due = 12'480 / 4;
  legal_from(
      d, "tRP", due + 22 + 22,
      {{due - 30, activate, 0, 1, 0}, {due + 22, precharge, 0, 1, 0}, {0, refresh, 0, 0, 0}});
  legal_from(d, "tRFC", due + 560, {{due, refresh, 0, 0, 0}, {0, activate, 0, 3, 0}});
  CHECK(violations_of(d, {{due, refresh, 0, 0, 0}, {due + 1, activate, 0, 3, 1}}).empty());
  CHECK(!violations_of(d, {{due, activate, 0, 0, 0}, {due + 1, refresh, 0, 2, 0}}).empty());
}

TEST_CASE("column commands") {
  const Device d = ddr4();
  const TestCommand first{0, activate, 0, 0};
  const TestCommand other_group{4, activate, 0, 1};
  const TestCommand same_group{8, activate, 0, 0, 1};
  legal_from(d, "tCCDL", 58,
             {first, same_group, {50, CommandType::read}, {0, CommandType::read, 0, 0, 1}});
  legal_from(d, "tWTRL", 50 + 16 + 4 + 12,
             {first, same_group, {50, CommandType::write}, {0, CommandType::read, 0, 0, 1}});
  legal_from(d, "tWTR", 50 + 16 + 4 + 4,
             {first, other_group, {50, CommandType::write}, {0, CommandType::read, 0, 1}});
  // Four clocks apart two reads of different groups are legal; a read's data leave before a
  // write's come, with two clocks between them.
  CHECK(
      violations_of(d, {first, other_group, {50, CommandType::read}, {54, CommandType::read, 0, 1}})
          .empty());
  legal_from(d, "data bus", 50 + 22 + 4 + 2 - 16,
             {first, other_group, {50, CommandType::read}, {0, CommandType::write, 0, 1}});
}

TEST_CASE("two ranks share the data bus, with tRTRS between them") {
  const Device d = ddr4();
  legal_from(d, "data bus", 56,
             {{0, activate}, {1, activate, 1}, {50, CommandType::read}, {0, CommandType::read, 1}});
}

TEST_CASE("refresh") {
  const Device d = ddr4();
  legal_from(d, "tRFC", 560, {{0, refresh}, {0, activate}});
  legal_from(d, "tRP", 52 + 22, {{0, activate}, {52, precharge}, {0, refresh}});
  CHECK(violations_of(d, {{0, activate}, {100, refresh}})[0].rule == "refresh of an open bank");
}

TEST_CASE("a missing refresh is found at the clock in which it is due") {
  const Device d = ddr4();
  constexpr Time interval = 12'480;
  CHECK(violations_of(d, {{0, activate}, {interval - 1, CommandType::read}}).empty());
  const std::vector<Violation> found =
      violations_of(d, {{0, activate}, {interval, CommandType::read}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].rule == "tREFI");
  CHECK(found[0].at == interval * clock_ps);
  CHECK(found[0].missing == 0);
  // The second of three is missing: one violation, at the first command that came without it.
  std::vector<TestCommand> given = {{interval, refresh}, {2 * interval + 7, activate}};
  REQUIRE(violations_of(d, given).size() == 1);
  CHECK(violations_of(d, given)[0].at == (2 * interval + 7) * clock_ps);
  CHECK(violations_of(d, given)[0].missing == 7 * clock_ps);
  given.push_back({3 * interval - 100, precharge});
  given.push_back({3 * interval, refresh});
  given.push_back({4 * interval - 1, activate});
  CHECK(violations_of(d, given).size() == 1);
  // Another rank's refresh does not count.
  CHECK(violations_of(d, {{interval, refresh, 1}, {interval + 1, activate}})[0].rule == "tREFI");
}

TEST_CASE("a refresh that is due waits only for precharges") {
  const Device d = ddr4();
  constexpr Time interval = 12'480;
  CHECK(violations_of(
            d, {{interval - 1, activate}, {interval + 51, precharge}, {interval + 73, refresh}})
            .empty());
  CHECK(violations_of(d, {{2 * interval - 1, refresh}, {2 * interval + 600, refresh}}).empty());
  const std::vector<Violation> found = violations_of(d, {{2 * interval, refresh}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].rule == "tREFI");
}

TEST_CASE("eight refreshes may be postponed, and eight issued in advance, as JEDEC allows") {
  const Device d = ddr4();
  constexpr Time interval = 12'480;
  CHECK(violations_of(d, {{9 * interval - 1, activate}}, jedec_refreshes).empty());
  REQUIRE(violations_of(d, {{9 * interval, activate}}, jedec_refreshes).size() == 1);
  CHECK(violations_of(d, {{9 * interval, activate}}, jedec_refreshes)[0].rule == "tREFI");
  CHECK(violations_of(d, {{9 * interval, refresh}}, jedec_refreshes).empty());
  std::vector<TestCommand> early;
  for (Time i = 0; i < 12; ++i)
    early.push_back({i * 560, refresh});
  early.push_back({9 * interval - 1, activate});
  CHECK(violations_of(d, early).empty());
  early.back().at = 9 * interval;
  CHECK(violations_of(d, early).size() == 1);
}

TEST_CASE("PCM: precharges take tRP or tRPclean, and array writes are tRRDpre apart") {
  Figures figures = pcm_figures();
  figures[0].second = 1; // clocks of 1 ns
  const Device d = made("pcm", MemoryKind::commands, figures);
  legal_from(d, "tRP", 55 + 3, {{0, activate}, {55, precharge}, {0, activate}});
  const Time written = 55 + 10 + 10 + 15;
  legal_from(d, "tRP", written + 150,
             {{0, activate}, {55, CommandType::write}, {written, precharge}, {0, activate}});
  legal_from(d, "tRRDpre", written + 28,
             {{0, activate},
              {5, activate, 0, 0, 1},
              {55, CommandType::write},
              {65, CommandType::write, 0, 0, 1},
              {written, precharge},
              {0, precharge, 0, 0, 1}});
}

TEST_CASE("commands that the state of a bank forbids") {
  const Device d = ddr4();
  CHECK(violations_of(d, {{0, CommandType::read}})[0].rule == "access to a row that is not open");
  CHECK(
      violations_of(d, {{0, activate, 0, 0, 0, 1}, {30, CommandType::read, 0, 0, 0, 2}})[0].rule ==
      "access to a row that is not open");
  CHECK(violations_of(d, {{0, activate}, {100, activate}})[0].rule == "activate of an open bank");
  CHECK(violations_of(d, {{0, precharge}})[0].rule == "precharge of a closed bank");
  CHECK(violations_of(d, {{0, activate}, {0, activate, 1}})[0].rule == "command bus");
}

TEST_CASE("power states") {
  Figures figures = ddr4_figures();
  figures.insert(figures.end(), {{"tXP", 10}, {"tXS", 576}, {"tCKE", 8}, {"tCKESR", 9}});
  const Device d = made("sleepy", MemoryKind::commands, figures);
  legal_from(d, "tCKE", 108, {{100, power_down}, {0, wake}});
  legal_from(d, "tXP", 160, {{100, power_down}, {150, wake}, {0, activate}});
  legal_from(d, "tCKESR", 109, {{100, self_refresh}, {0, wake}});
  legal_from(d, "tXS", 726, {{100, self_refresh}, {150, wake}, {0, activate}});
  legal_from(d, "tRP", 74, {{0, activate}, {52, precharge}, {0, self_refresh}});
  legal_from(d, "tRDPDEN", 50 + 22 + 4, {{0, activate}, {50, CommandType::read}, {0, power_down}});
  legal_from(d, "tWRPDEN", 50 + 16 + 4 + 24,
             {{0, activate}, {50, CommandType::write}, {0, power_down}});
  const auto breaks = [&](const char* rule, std::vector<TestCommand> given) {
    const std::vector<Violation> found = violations_of(d, std::move(given));
    REQUIRE(found.size() == 1);
    CHECK(found[0].rule == rule);
  };
  breaks("command to a rank that sleeps", {{100, power_down}, {200, activate}});
  breaks("wake of a rank that is awake", {{100, wake}});
  breaks("self-refresh with an open bank", {{0, activate}, {100, self_refresh}});
  CHECK(violations_of(d, {{100, power_down}, {200, activate, 1}}).empty()); // another rank
  breaks("tREFI", {{100, power_down}, {12'490, wake}, {12'500, activate}});
  CHECK(violations_of(d, {{100, self_refresh}, {12'490, wake}, {13'066, activate}}).empty());
}
