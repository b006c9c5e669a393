// What must never happen: stores into a tier by the heap itself, and misuse that goes unnoticed.
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

/// What a child that runs `work` writes to stderr before it is killed by SIGABRT; empty if it is
/// not.
template <class Work>
std::string last_words(const Work& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    work();
    _exit(0);
  }
  close(ends[1]);
  std::string words;
  char text[512];
  for (ssize_t got = 0; (got = read(ends[0], text, sizeof text)) > 0;)
    words.append(text, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? words : "";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("malloc and free neither load from nor store into the memory of a tier") {
  const int tier = hm_tier_create("untouchable", "dram,capacity=1GiB");
  REQUIRE(tier >= 0);
  // No access at all from now on: any would end this test by SIGSEGV.
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

#ifndef __SANITIZE_THREAD__ // which lets a child start no threads, and the heap wants one at times
namespace {

/// How a child ended, as waitpid() tells it; 0 if `work` was true there.
template <class Work>
int ending_of(const Work& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

} // namespace

TEST_CASE("a child has nothing of a tier that says fork=deny") {
  const int status = ending_of([] { // in a child: tiers are few
    const int tier = hm_tier_create("denied", "shm:,capacity=4MiB,fork=deny");
    auto* block = static_cast<volatile char*>(hm_malloc(tier, 100));
    *block = 'x';
    const int allocating = ending_of([tier, block] {
      const bool refused = hm_malloc(tier, 100) == nullptr && errno == ENODEV;
      hm_free(const_cast<char*>(block)); // a program's clean-up: nothing is touched
      const bool again = hm_malloc(tier, 100) == nullptr && errno == ENODEV;
      return refused && again && hm_malloc(HM_NEAR, 100) != nullptr;
    });
    const int reading = ending_of([block] {
      signal(SIGSEGV, SIG_DFL); // not a sanitizer's
      return *block != '\0';
    });
    return allocating == 0 && WIFSIGNALED(reading) && WTERMSIG(reading) == SIGSEGV && *block == 'x';
  });
  CHECK(status == 0);
}

TEST_CASE("weighted nodes are used, or the kernel is said to lack them") {
  const int status = ending_of([] {
    constexpr std::size_t size = 100'000;
    const int tier = hm_tier_create("weighted", "numa:0,weighted");
    if (tier < 0) return has(hm_error(), "weighted wants Linux 6.9");
    void* block = hm_malloc(tier, size);
    hm_pages found{};
    if (block == nullptr) return false;
    std::memset(block, 1, size);
    return hm_residency(block, size, &found) == 0 && found.on_node[0] == found.pages;
  });
  CHECK(status == 0);
}

#endif

TEST_CASE("a second free is named, whatever lies between") {
  for (std::size_t size : {40ul, 3000ul, 100'000ul}) {
    const std::string words = last_words([size] {
      void* block = hm_malloc(HM_NEAR, size);
      void* other = hm_malloc(HM_NEAR, size);
      hm_free(block);
      hm_free(other);
      hm_free(block);
    });
    CHECK_MESSAGE(has(words, "double free"), words);
    CHECK(has(words, "tier near"));
  }
  const std::string large = last_words([] {
    void* block = hm_malloc(HM_NEAR, 5'000'000);
    hm_free(block);
    hm_free(block);
  });
  CHECK_MESSAGE(has(large, "no block begins"), large);
}

TEST_CASE("pointers into a block, and foreign ones, are named") {
  const std::string inside = last_words([] {
    auto* block = static_cast<char*>(hm_malloc(HM_NEAR, 100));
    hm_free(block + 24);
  });
  CHECK_MESSAGE(has(inside, "24 bytes inside a block of 112 bytes"), inside);
  const std::string large = last_words([] {
    auto* block = static_cast<char*>(hm_malloc(HM_NEAR, 1'000'000));
    hm_free(block + 48);
  });
  CHECK_MESSAGE(has(large, "48 bytes inside a large block"), large);
  const std::string foreign = last_words([] {
    static int here;
    hm_free(&here);
  });
  CHECK_MESSAGE(has(foreign, "hm_free"), foreign);
  CHECK(has(foreign, "not from this library"));
  const std::string resized = last_words([] {
    void* block = hm_malloc(HM_NEAR, 100);
    hm_free(block);
    void* volatile again = hm_realloc(HM_KEEP, block, 200);
    (void)again;
  });
  CHECK_MESSAGE(has(resized, "hm_realloc"), resized);
}

TEST_CASE("freed memory is given back, and reads as zero through hm_calloc") {
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
  CHECK(first[size - 1] == 1); // what is live stays
  hm_free(first);
}

TEST_CASE("all of many scattered free runs is given back") {
  constexpr std::size_t count = 2000, size = 1'000'000;
  std::vector<char*> blocks;
  for (std::size_t i = 0; i < count; ++i) { // of each the first page is touched
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

TEST_CASE("memory that the program has locked is cleared by hm_calloc") {
  const int tier = hm_tier_create("locked", "dram,capacity=16MiB");
  REQUIRE(tier >= 0);
  for (const std::size_t size : {std::size_t{100'000}, std::size_t{1'000'000}}) {
    auto* block = static_cast<unsigned char*>(hm_malloc(tier, size));
    REQUIRE(block != nullptr);
    REQUIRE(mlock(block, 4096) == 0); // the system refuses to take such pages back
    std::memset(block, 1, size);
    hm_free(block);
    hm_trim(tier);
    std::vector<unsigned char*> given; // all of the tier: the freed memory is part of it
    while (auto* one = static_cast<unsigned char*>(hm_calloc(tier, 1, size))) {
      given.push_back(one);
      CHECK(std::all_of(one, one + size, [](unsigned char byte) { return byte == 0; }));
    }
    CHECK(given.size() > 1);
    munlock(block, 4096);
    for (unsigned char* one : given)
      hm_free(one);
  }
}
