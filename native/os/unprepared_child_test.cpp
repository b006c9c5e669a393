#include "os/unprepared_child.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_support.hpp"

using namespace nearfar;

namespace {

/// Clones this process without fork handlers. The exit code of the child: what `work` returns.
template <class Work>
int code_in_clone(const Work& work) {
  const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) _exit(work());
  int status = -1;
  waitpid(static_cast<pid_t>(child), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST_CASE("a clone is unprepared until it is marked, and its parent is not") {
  os::watch_children();
  CHECK_FALSE(os::is_unprepared_child());
  CHECK(code_in_clone([] {
          const bool before = os::is_unprepared_child();
          os::mark_prepared();
          return before && !os::is_unprepared_child() ? 7 : 1;
        }) == 7);
  CHECK_FALSE(os::is_unprepared_child());
}

TEST_CASE("a child that shares the memory of its parent is not unprepared") {
  if (test::skipped_under_tsan("it makes vfork() a fork()")) return;
  os::watch_children();
  const pid_t child = vfork();
  if (child == 0) _exit(os::is_unprepared_child() ? 1 : 7);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 7);
}
