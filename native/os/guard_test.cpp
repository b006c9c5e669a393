#include "os/guard.hpp"

#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>

#include "test_support.hpp"

using namespace nearfar::os;

TEST_CASE("guarded code returns, crashes and hangs, again and again") {
  Guard guard(40);
  for (int round = 0; round < 2; ++round) {
    int called = 0;
    const auto count = [](void* context) { ++*static_cast<int*>(context); };
    CHECK(guard.run(count, &called).ending == Ending::returned);
    CHECK(called == 1);

    const Guarded aborted = guard.run([](void*) { std::raise(SIGABRT); }, nullptr);
    CHECK(aborted.ending == Ending::crashed);
    CHECK(aborted.signal == SIGABRT);

    if (nearfar::test::skipped_under_tsan("it defers signals, for ever in a loop without calls and "
                                          "after siglongjmp() out of a handler"))
      return;
    const auto spin = [](void*) {
      for (volatile bool again = true; again;) {
      }
    };
    CHECK(guard.run(spin, nullptr).ending == Ending::hung);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("an invalid address is reported") {
  Guard guard(1000);
  std::uintptr_t wild = 0x10;
  const Guarded result = guard.run(
      [](void* context) {
        *reinterpret_cast<volatile int*>(*static_cast<std::uintptr_t*>(context)) = 1;
      },
      &wild);
  CHECK(result.ending == Ending::crashed);
  CHECK(result.signal == SIGSEGV);
  CHECK(result.address == 0x10);
}
#endif
