// Hardening of an allocator: each error ends a child of the test.
#include <nearfar/hmalloc.h>

#include "alloc/allocator.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <doctest/doctest.h>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace nearfar;
using namespace nearfar::alloc;

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

namespace {

struct Words {
  bool guard = false;
  bool canary = false;
  bool wipe = false;
  std::size_t quarantine_bytes = 0;
};

/// The signal that ends a child in which run() uses a hardened process_allocator, 0 if none does.
template <class Run>
int signal_of(const Words& words, const Run& run) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGABRT, SIG_DFL); // not those of the test program
    signal(SIGSEGV, SIG_DFL);
    close(STDERR_FILENO);
    Settings& settings = process_allocator.settings;
    settings.guard = words.guard;
    settings.canary = words.canary;
    settings.wipe = words.wipe;
    settings.quarantine_bytes = words.quarantine_bytes;
    process_allocator.drop_stacks();
    run(process_allocator);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

constexpr Words canary{.canary = true};
constexpr Words wipe{.wipe = true, .quarantine_bytes = std::size_t{1} << 20};
constexpr Words guard{.guard = true};
constexpr Words all{
    .guard = true, .canary = true, .wipe = true, .quarantine_bytes = std::size_t{1} << 20};

/// Blocks of new slabs: those of before have no canary.
std::vector<char*> allocate_many(Allocator& allocator, std::size_t size) {
  std::vector<char*> blocks;
  for (int i = 0; i < 10'000 && blocks.size() * size < (std::size_t{64} << 20); ++i)
    blocks.push_back(static_cast<char*>(allocator.allocate(0, size)));
  return blocks;
}

} // namespace

TEST_CASE("a store behind the requested size is detected when the block is freed") {
  for (const std::size_t size : {0ul, 8ul, 100ul, 4096ul, 262'144ul})
    for (const std::size_t behind : {std::size_t{0}, std::size_t{31}}) {
      CHECK(signal_of(canary, [&](Allocator& a) {
              char* block = allocate_many(a, size).back();
              block[size + behind] = static_cast<char>(~block[size + behind]);
              a.release(block);
            }) == SIGABRT);
    }
}

TEST_CASE("a wrong size of a sized delete is detected") {
  CHECK(signal_of(canary, [](Allocator& a) { a.check_size(allocate_many(a, 72).back(), 1); }) ==
        SIGABRT);
  CHECK(signal_of(canary, [](Allocator& a) { a.check_size(allocate_many(a, 72).back(), 72); }) ==
        0);
}

TEST_CASE("freed blocks are cleared, and stores into them are detected later") {
  for (const std::size_t size : {8ul, 4096ul, 262'144ul}) {
    CHECK(signal_of(wipe, [size](Allocator& a) {
            auto* block = static_cast<char*>(a.allocate(0, size));
            std::memset(block, 'x', size);
            a.release(block);
            for (std::size_t i = 0; i < size; ++i)
              if (block[i] != 0) abort();
          }) == 0);
    CHECK(signal_of(wipe, [size](Allocator& a) {
            auto* block = static_cast<char*>(a.allocate(0, size));
            a.release(block);
            block[size / 2] = 'x';
            for (int i = 0; i < 5000; ++i)
              a.release(a.allocate(0, size));
          }) == SIGABRT);
  }
}

TEST_CASE("slabs are between inaccessible spans, which programs do not allocate") {
  const auto store_through_slabs = [](Allocator& a) {
    const std::vector<char*> blocks = allocate_many(a, 4000);
    const auto [lowest, highest] = std::ranges::minmax(blocks);
    for (char* at = lowest; at < highest; at += 4096)
      *at = 'x';
  };
  CHECK(signal_of(guard, store_through_slabs) == SIGSEGV);
  CHECK(signal_of(Words(), store_through_slabs) == 0);
}

TEST_CASE("memory of a destroyed heap has no guards") {
  CHECK(signal_of(guard, [](Allocator& allocator) {
          constexpr std::size_t size = std::size_t{4} << 20;
          hm_heap* heap = hm_heap_create(HM_NEAR, 0);
          for (int i = 0; i < 4; ++i)
            CHECK(hm_heap_malloc(heap, size) != nullptr);
          hm_heap_destroy(heap);
          for (int i = 0; i < 4; ++i) // one piece of what the heap had, guards included
            std::memset(allocator.allocate(0, 3 * size), 1, 3 * size);
        }) == 0);
}

TEST_CASE("sizes, alignments and contents hold in a hardened allocator") {
  CHECK(signal_of(all, [](Allocator& a) {
          for (int round = 0; round < 3; ++round) {
            std::vector<char*> blocks;
            for (std::size_t size = 0; size < 2'000'000; size += size / 3 + 1) {
              auto* block = static_cast<char*>(a.allocate(0, size));
              if (block == nullptr || a.usable_size(block, "test") < size) abort();
              for (std::size_t i = 0; i < size; ++i)
                if (block[i] != 0) abort(); // cleared when it was freed
              std::memset(block, 'a', size);
              block = static_cast<char*>(a.reallocate(0, block, size * 3 / 2 + 1));
              if (size > 0 && (block[0] != 'a' || block[size - 1] != 'a')) abort();
              blocks.push_back(block);
            }
            for (std::size_t alignment = 32; alignment <= 1 << 20; alignment *= 2) {
              void* block = a.allocate_aligned(0, alignment, alignment + 1);
              if (reinterpret_cast<std::uintptr_t>(block) % alignment != 0) abort();
              blocks.push_back(static_cast<char*>(block));
            }
            for (char* block : blocks)
              a.release(block);
            a.trim(0);
          }
        }) == 0);
}

#endif
