#include "os/process_pages.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/address_space.hpp"

using namespace nearfar;

namespace {

constexpr std::size_t page = os::page_bytes;

std::uint64_t address_of(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

/// Private memory on small pages, of which some are touched.
class Memory {
public:
  explicit Memory(std::size_t pages, int protection = PROT_READ | PROT_WRITE)
      : bytes_(pages * page) {
    void* mapped =
        mmap(nullptr, bytes_, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(mapped != MAP_FAILED);
    at_ = static_cast<std::byte*>(mapped);
    madvise(at_, bytes_, MADV_NOHUGEPAGE);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { munmap(at_, bytes_); }

  std::uint64_t begin() const { return address_of(at_); }
  std::uint64_t end() const { return begin() + bytes_; }
  std::uint64_t page_at(std::size_t number) const { return begin() + number * page; }
  void touch(std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i)
      at_[i * page] = std::byte{1};
  }
  std::byte read(std::size_t number) const {
    return static_cast<volatile std::byte*>(at_)[number * page];
  }

private:
  std::byte* at_ = nullptr;
  std::size_t bytes_;
};

os::ProcessPages opened(pid_t process, os::PageSearch search = os::PageSearch::by_range) {
  auto made = os::ProcessPages::open(process, search);
  REQUIRE(made);
  return std::move(*made);
}

/// All pages of a range, found in steps of `step` pages.
std::vector<os::PageRun> located(const os::ProcessPages& pages, std::uint64_t from,
                                 std::uint64_t to, std::uint64_t step = 1 << 20) {
  std::vector<os::PageRun> all;
  while (from < to) {
    auto found = pages.locate(from, to, step);
    REQUIRE(found);
    std::uint64_t count = 0;
    for (const os::PageRun& run : found->runs) {
      all.push_back(run);
      count += run.pages;
    }
    CHECK(count <= step);
    REQUIRE(found->end > from);
    from = found->end;
  }
  return all;
}

/// A child that waits until it is killed.
class Child {
public:
  Child() : process_(fork()) {
    REQUIRE(process_ >= 0);
    if (process_ == 0)
      for (;;)
        pause();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }
  pid_t process() const { return process_; }
  void end() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    process_ = -1;
  }

private:
  pid_t process_;
};

} // namespace

TEST_CASE("present pages are found by range and by page") {
  Memory memory(100);
  memory.touch(3, 2);
  memory.touch(70, 30);
  for (const os::PageSearch search : {os::PageSearch::by_range, os::PageSearch::by_page}) {
    const std::vector<os::PageRun> found =
        located(opened(getpid(), search), memory.begin(), memory.end());
    REQUIRE(found.size() == 2);
    CHECK(found[0].address == memory.page_at(3));
    CHECK(found[0].pages == 2);
    CHECK(found[0].node >= 0);
    CHECK(found[1].address == memory.page_at(70));
    CHECK(found[1].pages == 30);
  }
}

TEST_CASE("a range that begins and ends within pages has these pages") {
  Memory memory(4);
  memory.touch(0, 4);
  for (const os::PageSearch search : {os::PageSearch::by_range, os::PageSearch::by_page}) {
    const std::vector<os::PageRun> found =
        located(opened(getpid(), search), memory.begin() + page + 1, memory.begin() + 2 * page + 1);
    REQUIRE(found.size() == 1);
    CHECK(found[0].address == memory.page_at(1));
    CHECK(found[0].pages == 2);
  }
}

TEST_CASE("more pages than one system call takes, in more pieces than one scan returns") {
  Memory memory(6000);
  for (std::size_t i = 0; i < 6000; i += 2)
    memory.touch(i, 1);
  for (const os::PageSearch search : {os::PageSearch::by_range, os::PageSearch::by_page}) {
    const std::vector<os::PageRun> found =
        located(opened(getpid(), search), memory.begin(), memory.end());
    REQUIRE(found.size() == 3000);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].address == memory.page_at(2 * i));
      CHECK(found[i].pages == 1);
    }
  }
}

TEST_CASE("a search in steps finds each page once") {
  Memory memory(500);
  memory.touch(10, 300);
  memory.touch(499, 1);
  for (const os::PageSearch search : {os::PageSearch::by_range, os::PageSearch::by_page}) {
    std::uint64_t next = memory.page_at(10);
    std::uint64_t count = 0;
    for (const os::PageRun& run :
         located(opened(getpid(), search), memory.begin(), memory.end(), 7)) {
      CHECK((run.address == next || run.address == memory.page_at(499)));
      next = run.address + run.pages * page;
      count += run.pages;
    }
    CHECK(count == 301);
  }
}

TEST_CASE(
    "held pages are those in memory, without their nodes, and reserved memory costs nothing") {
  Memory memory(std::size_t{1} << 30); // 4 TiB
  memory.touch(5, 3);
  memory.touch(600, 2);
  const os::ProcessPages pages = opened(getpid());
  const os::LocatedPages found = pages.held(memory.begin(), memory.page_at(100'000), 1000);
  REQUIRE(found.runs.size() == 2);
  CHECK(found.runs[0] == os::PageRun{memory.page_at(5), 3, 0});
  CHECK(found.runs[1] == os::PageRun{memory.page_at(600), 2, 0});
  const os::LocatedPages by_page =
      opened(getpid(), os::PageSearch::by_page).held(memory.begin(), memory.page_at(100'000), 1000);
  CHECK(by_page.runs == found.runs);
  CHECK(pages.held(memory.begin(), memory.end(), 4).runs.size() == 2); // the search stops within
}

TEST_CASE("reserved address space has no pages, and a page of zeros has no node") {
  Memory reserved(std::size_t{3} << 20); // 12 GiB
  Memory memory(1);
  CHECK(memory.read(0) == std::byte{0}); // only read: the kernel's page of zeros
  for (const os::PageSearch search : {os::PageSearch::by_range, os::PageSearch::by_page})
    CHECK(located(opened(getpid(), search), reserved.begin(), reserved.end()).empty());
  const os::ProcessPages pages = opened(getpid());
  const std::vector<os::PageRun> found = located(pages, memory.begin(), memory.end());
  REQUIRE(found.size() == 1);
  CHECK(found[0].node == -EFAULT);
}

TEST_CASE("pages are moved to the node that they are on, and absent ones reported") {
  Memory memory(2000);
  memory.touch(0, 1999);
  const os::ProcessPages pages = opened(getpid());
  const int node = located(pages, memory.begin(), memory.begin() + page).at(0).node;
  const os::PageRun all{memory.begin(), 2000, 0};
  auto moved = pages.move({&all, 1}, node, false);
  REQUIRE(moved);
  REQUIRE(moved->size() == 2);
  CHECK((*moved)[0] == os::PageRun{memory.begin(), 1999, node});
  CHECK((*moved)[1] == os::PageRun{memory.page_at(1999), 1, -ENOENT});
}

TEST_CASE("a node that the machine does not have is refused") {
  Memory memory(1);
  memory.touch(0, 1);
  const os::PageRun all{memory.begin(), 1, 0};
  const auto moved = opened(getpid()).move({&all, 1}, 63, false);
  REQUIRE(!moved);
  CHECK(moved.error().code == Errc::unsupported);
}

TEST_CASE("an ended process is not current") {
  Memory memory(1);
  memory.touch(0, 1);
  Child child;
  const os::ProcessPages pages = opened(child.process());
  CHECK(pages.is_current());
  CHECK(located(pages, memory.begin(), memory.end()).size() == 1);
  const pid_t process = child.process();
  child.end();
  CHECK(!pages.is_current());
  const os::PageRun all{memory.begin(), 1, 0};
  const auto moved = pages.move({&all, 1}, 0, false);
  REQUIRE(!moved);
  CHECK(moved.error().code == Errc::not_found);
  const auto again = os::ProcessPages::open(process);
  REQUIRE(!again);
  CHECK(again.error().code == Errc::not_found);
}

TEST_CASE("a process that starts another program is not current") {
  int ready[2];
  REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
  int go[2];
  REQUIRE(pipe2(go, O_CLOEXEC) == 0);
  const pid_t process = fork();
  REQUIRE(process >= 0);
  if (process == 0) {
    char byte = 0;
    if (read(go[0], &byte, 1) == 1) execl("/bin/sleep", "sleep", "60", nullptr);
    _exit(1);
  }
  const os::ProcessPages pages = opened(process);
  CHECK(pages.is_current());
  REQUIRE(write(go[1], "g", 1) == 1);
  close(ready[1]); // the other writer is the child, until exec
  char byte = 0;
  CHECK(read(ready[0], &byte, 1) == 0);
  CHECK(!pages.is_current());
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  for (const int fd : {ready[0], go[0], go[1]})
    close(fd);
}
