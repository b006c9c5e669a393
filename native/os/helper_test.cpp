#include "os/helper.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <unistd.h>

using namespace nearfar::os;

TEST_CASE("a helper answers, and is started anew when it was lost") {
  Helper helper(
      [count = 0](std::string_view question) mutable {
        if (question == "die") raise(SIGKILL);
        if (question == "leave") _exit(3);
        while (question == "hang")
          pause();
        return std::string(question) + std::to_string(++count);
      },
      STDERR_FILENO);
  for (int round = 0; round < 2; ++round) {
    CHECK(helper.ask("a", 10'000)->text == "a1");
    CHECK(helper.ask(std::string(300'000, 'x'), 10'000)->text.size() == 300'001);
    CHECK(helper.ask("die", 10'000)->ended.signal == SIGKILL);
    CHECK(helper.ask("leave", 10'000)->ended.code == 3);
    CHECK(helper.ask("hang", 20)->ended.hung);
  }
}
