#include "os/process.hpp"

#include <cerrno>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace nearfar;

TEST_CASE("an error while reading is not taken for the end of the file") {
  std::byte buffer[16];
  std::size_t bytes = 1;
  const int memory = open("/proc/self/mem", O_RDONLY); // nothing is mapped at address 0
  REQUIRE(memory >= 0);
  CHECK(os::read_all(memory, buffer, sizeof buffer, bytes) == EIO);
  CHECK(bytes == 0);
  close(memory);
  const int nothing = open("/dev/null", O_RDONLY);
  REQUIRE(nothing >= 0);
  CHECK(os::read_all(nothing, buffer, sizeof buffer, bytes) == 0);
  close(nothing);
}
