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
    auto answer = helper.ask("a", 10'000);
    REQUIRE(bool(answer));
    CHECK(answer->text == "a1");
    answer = helper.ask(std::string(300'000, 'x'), 10'000);
    CHECK(answer->text.size() == 300'001);
    CHECK(helper.ask("die", 10'000)->ended.signal == SIGKILL);
    CHECK(helper.ask("leave", 10'000)->ended.code == 3);
    answer = helper.ask("hang", 20);
    CHECK(answer->ended.hung);
  }
}
