#include "os/steal.hpp"

#include <cstdint>
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>
#include <string>

#include "test_support.hpp"

using namespace nearfar;

TEST_CASE("what was taken is the eighth column of the processor's line") {
  const int cpu = test::usable_cpus().back();
  const os::StealMeter meter(cpu);
  const auto expected = [&] {
    std::ifstream stat("/proc/stat");
    for (std::string line; std::getline(stat, line);) {
      std::istringstream words(line);
      std::string name;
      words >> name;
      if (name != "cpu" + std::to_string(cpu)) continue;
      std::uint64_t column = 0;
      for (int i = 0; i < 8; ++i)
        words >> column;
      return column * 10'000'000u; // ticks of 10 ms on every Linux x86-64
    }
    return UINT64_MAX;
  };
  const std::uint64_t before = expected();
  const std::uint64_t reported = meter.taken_ns();
  CHECK(reported >= before);
  CHECK(reported <= expected());
}

TEST_CASE("the line of the last of many CPUs is read") {
  const test::Folder folder;
  const std::string path = folder.path() + "/stat";
  constexpr int cpus = 1000;
  std::ofstream stat(path);
  stat << "cpu  1 2 3 4 5 6 7 8 9 10\n";
  for (int cpu = 0; cpu < cpus; ++cpu)
    stat << "cpu" << cpu << " 18000000000 18000000000 18000000000 18000000000 5 6 7 " << cpu
         << " 18000000000 10\n";
  stat.close();
  for (const int cpu : {0, 159, 160, cpus - 1})
    CHECK(os::StealMeter(cpu, path.c_str()).taken_ns() ==
          static_cast<std::uint64_t>(cpu) * 10'000'000u);
}

TEST_CASE("a processor that is not there lost nothing") {
  CHECK(os::StealMeter(test::missing_cpu).taken_ns() == 0);
}
