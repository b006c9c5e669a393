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

/// Runs `what` while no descriptor can be opened, so that the kernel cannot fill pages.
template <class What>
void without_descriptors(const What& what) {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  what();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

/// Copies memory with a page that cannot be read, and checks the pages around it.
void check_copies_around_a_guard() {
  constexpr std::size_t guard = part / 2;
  constexpr std::size_t behind = guard + os::page_bytes;
  std::byte* from = os::map_anonymous(part);
  std::byte* to = os::map_anonymous(part);
  REQUIRE(from != nullptr);
  REQUIRE(to != nullptr);
  std::fill(from, from + part, std::byte{5});
  REQUIRE(os::protect(from + guard, os::page_bytes, os::Access::none) == 0);
  os::PageCopier(to, part).copy(to, from, part);
  CHECK(std::count(to, to + guard, std::byte{5}) == guard);
  CHECK(std::count(to + guard, to + behind, std::byte{0}) == os::page_bytes);
  CHECK(std::count(to + behind, to + part, std::byte{5}) == part - behind);
  os::unmap(from, part);
  os::unmap(to, part);
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
  without_descriptors(check_copies);
}

TEST_CASE("pages that cannot be read are skipped") {
  check_copies_around_a_guard();
  without_descriptors(check_copies_around_a_guard);
}
