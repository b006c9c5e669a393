#include "base/frame_walk.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <vector>

namespace {

using nearfar::FrameRecord;

constexpr std::size_t page = 4096;

/// Two pages of a stack, with nothing readable behind them.
class Stack {
public:
  Stack()
      : memory_(static_cast<std::byte*>(
            mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(memory_ + 2 * page, page, PROT_NONE);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack() { munmap(memory_, 3 * page); }

  std::uintptr_t at(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory_ + offset);
  }
  void put(std::size_t offset, std::uintptr_t outer, std::uintptr_t caller) {
    *reinterpret_cast<FrameRecord*>(memory_ + offset) = {outer, caller};
  }
  std::vector<std::uintptr_t> walk() {
    std::vector<std::uintptr_t> callers;
    nearfar::walk_frames(
        at(0),
        [&](std::uintptr_t from, FrameRecord& record) {
          asked.push_back(from);
          if (from + sizeof record > at(2 * page)) return false;
          record = *reinterpret_cast<const FrameRecord*>(from);
          return true;
        },
        [&](std::uintptr_t caller) {
          callers.push_back(caller);
          return callers.size() < 4;
        });
    return callers;
  }
  std::vector<std::uintptr_t> asked; ///< addresses that were not read directly

private:
  std::byte* memory_;
};

} // namespace

TEST_CASE("frames are followed outwards, and only a new page is not trusted to be there") {
  Stack stack;
  stack.put(0, stack.at(64), 1);
  stack.put(64, stack.at(page), 2);
  stack.put(page, stack.at(page + 32), 3);
  stack.put(page + 32, 0, 4);
  CHECK(stack.walk() == std::vector<std::uintptr_t>{2, 3, 4});
  CHECK(stack.asked == std::vector<std::uintptr_t>{stack.at(page)});
}

TEST_CASE("a walk ends where the visitor ends it") {
  Stack stack;
  for (std::size_t i = 0; i < 10; ++i)
    stack.put(i * 32, stack.at((i + 1) * 32), i);
  CHECK(stack.walk() == std::vector<std::uintptr_t>{1, 2, 3, 4});
}

TEST_CASE("a register that holds no frame pointer ends the walk") {
  Stack stack;
  for (const std::uintptr_t outer :
       {std::uintptr_t{0}, stack.at(0), stack.at(0) - 32, stack.at(33), stack.at(0) + (2u << 20),
        stack.at(2 * page), stack.at(2 * page) - 8, ~std::uintptr_t{7}}) {
    stack.put(0, outer, 1);
    CHECK(stack.walk().empty());
  }
}
