// Tiers that fail to open, tiers that a child does not get, and tiers opened while a thread forks.
#include <nearfar/hmalloc.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <doctest/doctest.h>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "test_support.hpp"

using nearfar::test::status_in_child;

namespace {

int open_descriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr)
    ++count;
  closedir(folder);
  return count;
}

/// Number of lines of /proc/self/maps that contain this text.
int mappings_with(const std::string& text) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find(text) != std::string::npos) ++count;
  return count;
}

} // namespace

TEST_CASE("a rejected spill target leaves no descriptor, mapping or name") {
  const nearfar::test::Folder folder;
  const std::string file = "file:" + folder.path() + ",capacity=4MiB";
  const int descriptors = open_descriptors();
  for (int i = 0; i < 20; ++i) { // more than there are slots
    CHECK(hm_tier_create("rolled", (file + ",overflow=spill:typo").c_str()) == -1);
    CHECK(errno == EINVAL);
    CHECK(std::string(hm_error()).find("spill:typo") != std::string::npos);
  }
  CHECK(open_descriptors() == descriptors);
  CHECK(mappings_with(folder.path()) == 0);
  CHECK(hm_tier_find("rolled") == -1);
}

#ifndef __SANITIZE_THREAD__ // under which a child cannot start threads

namespace {

/// Limits the address space to 1 MiB more than is in use. Returns the previous limit.
rlimit limit_address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit limit{(pages + 256) * 4096, before.rlim_max};
  setrlimit(RLIMIT_AS, &limit);
  return before;
}

/// Whether blocks of a tier do not overlap.
bool blocks_are_disjoint(int tier) {
  std::vector<unsigned char*> blocks;
  for (std::size_t i = 0; i < 400; ++i) {
    auto* block = static_cast<unsigned char*>(hm_malloc(tier, 100 + i * 700 % 90'000));
    if (block == nullptr || hm_tier_of(block) != tier) return false;
    std::memset(block, static_cast<int>(i % 251), 100);
    blocks.push_back(block);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i][0] != i % 251 || blocks[i][99] != i % 251) return false;
  for (unsigned char* block : blocks)
    hm_free(block);
  return true;
}

} // namespace

TEST_CASE("a failed open leaves no pages and no memory policy in the slot") {
  CHECK(status_in_child([] {
          // More than the machine has: the policy is set and pages are filled, then it fails.
          if (hm_tier_create("first", "numa:0,reserve=full,overflow=spill:typo") != -1)
            return false;
          const bool no_policy = mappings_with("bind:0") == 0;
          const int tier = hm_tier_create("second", "dram,capacity=16MiB");
          auto* block = static_cast<unsigned char*>(hm_calloc(tier, 1, 1 << 20));
          return no_policy && block != nullptr &&
                 std::all_of(block, block + (1 << 20), [](unsigned char b) { return b == 0; });
        }) == 0);
}

TEST_CASE("a tier whose metadata cannot be mapped is unmapped") {
  const nearfar::test::Folder folder;
  const std::string specification = "file:" + folder.path() + ",capacity=4MiB";
  CHECK(status_in_child([&] {
          hm_free(hm_malloc(HM_NEAR, 100));
          const int descriptors = open_descriptors();
          const rlimit before = limit_address_space(); // no room for the metadata, mapped last
          const int tier = hm_tier_create("late", specification.c_str());
          setrlimit(RLIMIT_AS, &before);
          return tier == -1 && std::string(hm_error()).find("metadata") != std::string::npos &&
                 open_descriptors() == descriptors && mappings_with(folder.path()) == 0;
        }) == 0);
}

TEST_CASE("a child can recreate a tier denied to it, and blocks do not overlap") {
  for (const char* again : {"dram", "shm:,capacity=64MiB"}) {
    CHECK(status_in_child([again] {
            const int tier = hm_tier_create("denied", "shm:,capacity=64MiB,fork=deny");
            std::vector<void*> inherited;
            for (std::size_t i = 0; i < 300; ++i)
              inherited.push_back(hm_malloc(tier, 50 + i * 500 % 60'000));
            for (std::size_t i = 0; i < 300; i += 3)
              hm_free(std::exchange(inherited[i], nullptr));
            void* large = hm_malloc(tier, 3 << 20);
            return status_in_child([&] {
                     hm_free(inherited[1]);
                     if (hm_tier_create("denied", again) != tier) return false;
                     if (!blocks_are_disjoint(tier)) return false;
                     for (void* block : inherited) // has no effect
                       hm_free(block);
                     hm_free(large);
                     return blocks_are_disjoint(tier);
                   }) == 0 &&
                   blocks_are_disjoint(tier);
          }) == 0);
  }
}

TEST_CASE("a child gets an unused tier with fork=copy as a file") {
  const nearfar::test::Folder folder;
  CHECK(status_in_child([&] {
          const std::string file = "file:" + folder.path() + ",capacity=64MiB";
          const int copied = hm_tier_create("copied", (file + ",fork=copy").c_str());
          return copied > 0 && status_in_child([&] {
                                 return mappings_with(folder.path()) == 1 &&
                                        hm_malloc(copied, 100) != nullptr &&
                                        blocks_are_disjoint(copied);
                               }) == 0;
        }) == 0);
}

TEST_CASE("a child without memory for the copy of a tier does not get it") {
  CHECK(status_in_child([] {
          const int tier = hm_tier_create("uncopied", "shm:,capacity=64MiB");
          void* block = hm_malloc(tier, 40 << 20);
          std::memset(block, 1, 40 << 20);
          const rlimit before = limit_address_space();
          const int status = status_in_child([tier, block] {
            hm_free(block); // has no effect
            return hm_malloc(tier, 100) == nullptr && errno == ENODEV;
          });
          setrlimit(RLIMIT_AS, &before);
          return status == 0 && blocks_are_disjoint(tier);
        }) == 0);
}

TEST_CASE("forks do not hang while tiers are opened and variables are placed") {
  CHECK(status_in_child([] {
          std::atomic<bool> stop{false};
          std::thread opener([&] {
            for (int i = 0; i < 40; ++i)
              hm_tier_create("rolled", "shm:,capacity=8MiB,overflow=spill:typo");
            hm_tier_create("made", "shm:,capacity=64MiB");
            for (int range = 0; range < 60; ++range) {
              auto* pages = static_cast<char*>(
                  mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
              hm_place_variables("made", pages, pages + 8192, pages + 8192);
            }
            stop = true;
          });
          bool passed = true;
          while (!stop)
            passed = status_in_child([] { // hangs if a lock is held
                       const int made = hm_tier_find("made");
                       return hm_tier_create("rolled", "shm:,overflow=spill:typo") == -1 &&
                              (made < 0 || blocks_are_disjoint(made));
                     }) == 0 &&
                     passed;
          opener.join();
          return passed && hm_tier_find("made") > 0;
        }) == 0);
}

TEST_CASE("a tier grows after the program has closed its descriptor") {
  const nearfar::test::Folder folder;
  for (const std::string& medium : {std::string("shm:"), "file:" + folder.path()})
    CHECK(status_in_child([&medium] {
            const int tier = hm_tier_create("lost", (medium + ",capacity=64MiB").c_str());
            if (tier < 0 || hm_malloc(tier, 1 << 20) == nullptr) return false;
            for (int fd = 3; fd < 1100; ++fd)
              close(fd);
            std::vector<void*> blocks; // up to the capacity, then an error
            while (void* block = hm_malloc(tier, 1 << 20))
              blocks.push_back(std::memset(block, 1, 1 << 20));
            return blocks.size() > 50 && errno == ENOMEM;
          }) == 0);
}

#endif
