// The allocator does not access the memory of a tier, and detects invalid pointers.
#include <nearfar/hmalloc.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <doctest/doctest.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/random.hpp"
#include "test_support.hpp"

namespace {

std::byte* window_of(int tier) {
  return reinterpret_cast<std::byte*>(hm_window.base +
                                      (static_cast<std::uintptr_t>(tier) << hm_window.shift));
}

/// Runs `work` in a child, and returns what it writes to standard error before SIGABRT; empty if it
/// does not abort.
template <class Work>
std::string message_of_abort(const Work& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    work();
    _exit(0);
  }
  close(ends[1]);
  std::string message;
  char text[512];
  for (ssize_t got = 0; (got = read(ends[0], text, sizeof text)) > 0;)
    message.append(text, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? message : "";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("allocating and freeing does not access the memory of a tier") {
  const int tier = hm_tier_create("untouchable", "dram,capacity=1GiB");
  REQUIRE(tier >= 0);
  // From now on any access ends this test by SIGSEGV.
  REQUIRE(mprotect(window_of(tier), std::size_t{1} << 30, PROT_NONE) == 0);
  nearfar::Random random(7);
  std::vector<void*> blocks(3000, nullptr);
  for (int i = 0; i < 100'000; ++i) {
    void*& block = blocks[random.below(blocks.size())];
    hm_free(block);
    block = i % 7 == 0 ? hm_memalign(tier, 256, random.below(5000))
                       : hm_malloc(tier, random.below(std::size_t{16} << random.below(17)));
    REQUIRE(block != nullptr);
    REQUIRE(hm_usable_size(block) > 0);
  }
  for (void* block : blocks)
    hm_free(block);
  CHECK(mprotect(window_of(tier), std::size_t{1} << 30, PROT_READ | PROT_WRITE) == 0);
  hm_trim(tier);
}

#ifndef __SANITIZE_THREAD__ // under which a child cannot start threads
namespace {

/// Runs `work` in a child, and returns its wait status: 0 if `work` returns true.
template <class Work>
int status_of_child(const Work& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

} // namespace

TEST_CASE("a child has no access to a tier with fork=deny") {
  const int status = status_of_child([] { // in a child, because tiers cannot be removed
    const int tier = hm_tier_create("denied", "shm:,capacity=4MiB,fork=deny");
    auto* block = static_cast<volatile char*>(hm_malloc(tier, 100));
    *block = 'x';
    const int allocating = status_of_child([tier, block] {
      const bool refused = hm_malloc(tier, 100) == nullptr && errno == ENODEV;
      hm_free(const_cast<char*>(block)); // has no effect
      const bool again = hm_malloc(tier, 100) == nullptr && errno == ENODEV;
      return refused && again && hm_malloc(HM_NEAR, 100) != nullptr;
    });
    const int reading = status_of_child([block] {
      signal(SIGSEGV, SIG_DFL); // not a sanitizer's
      return *block != '\0';
    });
    return allocating == 0 && WIFSIGNALED(reading) && WTERMSIG(reading) == SIGSEGV && *block == 'x';
  });
  CHECK(status == 0);
}

TEST_CASE("weighted nodes are used, or reported as unsupported by the kernel") {
  const int status = status_of_child([] {
    constexpr std::size_t size = 100'000;
    const int tier = hm_tier_create("weighted", "numa:0,weighted");
    if (tier < 0) return has(hm_error(), "weighted requires Linux 6.9");
    void* block = hm_malloc(tier, size);
    hm_pages found{};
    if (block == nullptr) return false;
    std::memset(block, 1, size);
    return hm_residency(block, size, &found) == 0 && found.on_node[0] == found.pages;
  });
  CHECK(status == 0);
}

#endif

TEST_CASE("a double free is reported, also after other calls") {
  for (std::size_t size : {40ul, 3000ul, 100'000ul}) {
    const std::string message = message_of_abort([size] {
      void* block = hm_malloc(HM_NEAR, size);
      void* other = hm_malloc(HM_NEAR, size);
      hm_free(block);
      hm_free(other);
      hm_free(block);
    });
    CHECK_MESSAGE(has(message, "double free"), message);
    CHECK(has(message, "tier near"));
  }
  const std::string large = message_of_abort([] {
    void* block = hm_malloc(HM_NEAR, 5'000'000);
    hm_free(block);
    hm_free(block);
  });
  CHECK_MESSAGE(has(large, "no block begins"), large);
}

TEST_CASE("pointers into a block and pointers of other allocators are reported") {
  const std::string inside = message_of_abort([] {
    auto* block = static_cast<char*>(hm_malloc(HM_NEAR, 100));
    hm_free(block + 24);
  });
  CHECK_MESSAGE(has(inside, "24 bytes inside a block of 112 bytes"), inside);
  const std::string large = message_of_abort([] {
    auto* block = static_cast<char*>(hm_malloc(HM_NEAR, 1'000'000));
    hm_free(block + 48);
  });
  CHECK_MESSAGE(has(large, "48 bytes inside a large block"), large);
  const std::string foreign = message_of_abort([] {
    static int here;
    hm_free(&here);
  });
  CHECK_MESSAGE(has(foreign, "hm_free"), foreign);
  CHECK(has(foreign, "not from this library"));
  const std::string resized = message_of_abort([] {
    void* block = hm_malloc(HM_NEAR, 100);
    hm_free(block);
    void* volatile again = hm_realloc(HM_KEEP, block, 200);
    (void)again;
  });
  CHECK_MESSAGE(has(resized, "hm_realloc"), resized);
}

TEST_CASE("hm_trim returns freed memory, and not that of live blocks") {
  constexpr std::size_t count = 2000, size = 20'000;
  std::vector<char*> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    blocks.push_back(static_cast<char*>(hm_malloc(HM_NEAR, size)));
    std::memset(blocks.back(), 1, size);
  }
  char* first = blocks.front();
  for (std::size_t i = 1; i < count; ++i)
    hm_free(blocks[i]);
  CHECK(hm_trim(HM_NEAR) > count * size * 9 / 10);
  CHECK(first[size - 1] == 1); // live blocks are not changed
  hm_free(first);
}

TEST_CASE("hm_trim returns many scattered free runs completely") {
  constexpr std::size_t count = 2000, size = 1'000'000;
  std::vector<char*> blocks;
  for (std::size_t i = 0; i < count; ++i) { // write the first page of each
    blocks.push_back(static_cast<char*>(hm_malloc(HM_NEAR, size)));
    blocks.back()[0] = 1;
  }
  hm_trim(HM_NEAR);
  for (std::size_t i = 0; i < count; i += 2)
    hm_free(blocks[i]);
  CHECK(hm_trim(HM_NEAR) >= count / 2 * size);
  CHECK(hm_trim(HM_NEAR) == 0);
  for (std::size_t i = 1; i < count; i += 2) {
    CHECK(blocks[i][0] == 1);
    hm_free(blocks[i]);
  }
  CHECK(hm_trim(HM_NEAR) >= count / 2 * size);
}

TEST_CASE("hm_calloc clears memory that the program has locked") {
  const int tier = hm_tier_create("locked", "dram,capacity=16MiB");
  REQUIRE(tier >= 0);
  for (const std::size_t size : {std::size_t{100'000}, std::size_t{1'000'000}}) {
    auto* block = static_cast<unsigned char*>(hm_malloc(tier, size));
    REQUIRE(block != nullptr);
    REQUIRE(mlock(block, 4096) == 0); // the system does not take such pages back
    std::memset(block, 1, size);
    hm_free(block);
    hm_trim(tier);
    std::vector<unsigned char*> filling; // all of the tier, with the freed memory
    while (auto* one = static_cast<unsigned char*>(hm_calloc(tier, 1, size))) {
      filling.push_back(one);
      CHECK(std::all_of(one, one + size, [](unsigned char byte) { return byte == 0; }));
    }
    CHECK(filling.size() > 1);
    munlock(block, 4096);
    for (unsigned char* one : filling)
      hm_free(one);
  }
}
