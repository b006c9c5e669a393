#include "os/page_copier.hpp"

#include <algorithm>
#include <cstddef>
#include <doctest/doctest.h>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "os/address_space.hpp"

using namespace nearfar;

namespace {

constexpr std::size_t part = std::size_t{1} << 20;
constexpr std::size_t bytes = 4 * part;

/// Copies the second and the fourth part, and checks them, and that the others can be used then.
void check_copies() {
  std::vector<std::byte> from(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    from[i] = static_cast<std::byte>(i * 7 / 5);
  std::byte* to = os::map_anonymous(bytes);
  REQUIRE(to != nullptr);
  {
    os::PageCopier copier(to, bytes);
    copier.copy(to + part, from.data() + part, part);
    copier.copy(to + 3 * part, from.data() + 3 * part, part);
  }
  for (const std::size_t at : {part, 3 * part})
    CHECK(std::equal(to + at, to + at + part, from.begin() + static_cast<std::ptrdiff_t>(at)));
  CHECK(std::count(to, to + part, std::byte{0}) == part);
  std::fill(to, to + bytes, std::byte{1}); // a page that is still watched would never answer
  os::unmap(to, bytes);
}

} // namespace

TEST_CASE("pages are copied, and pages in between are new") { check_copies(); }

TEST_CASE("a filter that ends programs for an unexpected system call does not end the copy") {
  const pid_t child = fork();
  if (child == 0) {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{std::size(code), code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
      _exit(2);
    check_copies();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("without a descriptor pages are touched, and copied as well") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  check_copies();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
}
