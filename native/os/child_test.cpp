#include "os/child.hpp"

#include <csignal>
#include <doctest/doctest.h>

using namespace nearfar::os;

namespace {

nearfar::Result<Ended> shell(const char* command, std::uint64_t limit_ms = 10'000) {
  char program[] = "sh";
  char flag[] = "-c";
  char* arguments[] = {program, flag, const_cast<char*>(command), nullptr};
  return run_program(arguments, "/dev/null", 2, limit_ms);
}

} // namespace

TEST_CASE("a program ends with a code, by a signal, or at its limit") {
  CHECK(shell("exit 3")->code == 3);
  CHECK(shell("kill -SEGV $$")->signal == SIGSEGV);
  CHECK(!shell("exit 0")->hung);
  CHECK(shell("sleep 60", 30)->hung);
}

TEST_CASE("a program that is not there is an error") {
  char program[] = "/no/such/program";
  char* arguments[] = {program, nullptr};
  auto ended = run_program(arguments, "/dev/null", 2, 1000);
  REQUIRE(!ended);
  CHECK(ended.error().code == nearfar::Errc::not_found);
}
