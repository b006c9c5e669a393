// What an allocator does with rules for mappings and globals while a program maps memory.
#include "alloc/allocator.hpp"

#include <atomic>
#include <csignal>
#include <doctest/doctest.h>
#include <fstream>
#include <memory>
#include <nearfar/hmalloc.h>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "alloc/metadata.hpp"
#include "alloc/rule_statistics.hpp"
#include "test_support.hpp"

using namespace nearfar;
using namespace nearfar::alloc;

namespace {

constexpr std::size_t page = os::page_bytes;

/// An allocator with a plan whose tier far is node 0.
class PlannedAllocator {
public:
  explicit PlannedAllocator(const std::string& rules) {
    constexpr unsigned shift = 30;
    REQUIRE(allocator_->window.open_reserved(shift));
    REQUIRE(allocator_->open());
    const std::string path = folder_.path("plan");
    std::ofstream(path) << "hmalloc-plan 1\ntier far numa:0\ntier file shm:,capacity=16MiB\n"
                        << rules;
    allocator_->settings.count_rules = true;
    Status read = load_plan(*allocator_, path.c_str());
    if (!read) error = std::string(read.error().what) + "; " + read.error().next;
    if (read) allocator_->mappings.start(*allocator_);
  }
  ~PlannedAllocator() { allocator_->close(); }
  PlannedAllocator(const PlannedAllocator&) = delete;
  PlannedAllocator& operator=(const PlannedAllocator&) = delete;

  PlacedMappings& mappings() { return allocator_->mappings; }
  TierHeap& far() { return allocator_->tiers[allocator_->find_tier("far")]; }
  std::int64_t live(std::size_t rule) const {
    return allocator_->plan.mapping.rules[rule].live_bytes.load();
  }
  const RuleStatistics& counts(std::size_t rule) const {
    return *allocator_->plan.mapping.rules[rule].statistics;
  }
  std::string error;

private:
  test::Folder folder_;
  std::unique_ptr<Allocator> allocator_ = std::make_unique<Allocator>();
};

/// Anonymous memory of the test, registered as a program's mmap() does.
class Mapped {
public:
  Mapped(PlannedAllocator& allocator, std::size_t pages) : allocator_(allocator) {
    at = static_cast<char*>(
        mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(at != MAP_FAILED);
    bytes_ = pages * page;
    allocator.mappings().add(origin(), false, page);
  }
  ~Mapped() {
    allocator_.mappings().remove(origin().begin, bytes_);
    munmap(at, bytes_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  MappingOrigin origin() const {
    MappingOrigin origin;
    origin.kind = MappedKind::anonymous;
    origin.begin = reinterpret_cast<std::uintptr_t>(at);
    origin.bytes = bytes_;
    return origin;
  }
  char* at;

private:
  PlannedAllocator& allocator_;
  std::size_t bytes_;
};

bool node_policies_work() {
  PlannedAllocator allocator("rule far map=anonymous\n");
  return allocator.error.empty();
}

} // namespace

TEST_CASE("bytes of placed mappings are counted until they are unmapped") {
  if (!node_policies_work()) return;
  PlannedAllocator allocator("rule far map=anonymous range=..8KiB\nrule far map=anonymous\n");
  REQUIRE(allocator.error.empty());
  {
    const Mapped first(allocator, 10);
    const Mapped second(allocator, 1);
    first.at[0] = first.at[5 * page] = 1;
    CHECK(allocator.live(0) == 3 * page);
    CHECK(allocator.live(1) == 8 * page);
    allocator.mappings().remove(first.origin().begin + 4 * page, 2 * page);
    CHECK(allocator.live(1) == 6 * page);
    CHECK(allocator.counts(1).pages.get() == 2);
    CHECK(allocator.counts(1).absent.get() == 1);
    allocator.mappings().sample();
    CHECK(allocator.counts(0).pages.get() == 3);
    CHECK(allocator.counts(0).on_node[0].get() == 1);
  }
  CHECK(allocator.live(0) == 0);
  CHECK(allocator.live(1) == 0);
  CHECK(allocator.counts(0).allocations.get() == 2);
  CHECK(allocator.counts(0).peak_bytes.load() == 3 * page);
}

TEST_CASE("a mapping over a part of a placed one is counted once") {
  if (!node_policies_work()) return;
  PlannedAllocator allocator("rule far map=anonymous size=80KiB..80KiB\n");
  REQUIRE(allocator.error.empty());
  const Mapped whole(allocator, 20);
  MappingOrigin part = whole.origin();
  part.begin += 4 * page;
  part.bytes = 2 * page;
  allocator.mappings().add(part, true, page);
  CHECK(allocator.live(0) == 20 * page);
  allocator.mappings().add(part, false, page); // not MAP_FIXED: the earlier one is gone
  CHECK(allocator.live(0) == 18 * page);
}

namespace {

/// Whether a child by clone(), in which no fork handler runs, ends by itself with code 0.
template <class Work>
bool ends_in_clone(const Work& work) {
  const auto child =
      static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    alarm(60);
    _exit(work() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

} // namespace

TEST_CASE("a child by clone() does not place mappings: another thread may have held the lock") {
  if (!node_policies_work()) return;
  hm_free(hm_malloc(HM_NEAR, 100)); // registers the fork handlers
  PlannedAllocator allocator("rule far map=anonymous\n");
  std::atomic<bool> is_locked{false}, is_over{false};
  std::thread holder([&] {
    const os::LockGuard guard(allocator.mappings().lock);
    is_locked = true;
    while (!is_over)
      std::this_thread::yield();
  });
  while (!is_locked)
    std::this_thread::yield();
  CHECK(allocator.mappings().active());
  CHECK(ends_in_clone([&] {
    allocator.mappings().sample();
    return !allocator.mappings().active();
  }));
  is_over = true;
  holder.join();
  CHECK(test::status_in_child([&] { return allocator.mappings().active(); }) == 0);
}

namespace {

/// Maps memory as a handler does that interrupts this thread in the allocator.
void map_in_allocator(PlannedAllocator& allocator) NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
  const os::LockGuard of_metadata(metadata_lock());
  const os::LockGuard of_tier(allocator.far().runs.lock());
  const Mapped mapped(allocator, 4);
  CHECK(allocator.live(0) == 4 * page);
}

} // namespace

TEST_CASE("a handler that interrupts the allocator can map memory: none of its locks is acquired") {
  if (!node_policies_work()) return;
  PlannedAllocator allocator("rule far map=anonymous\n");
  map_in_allocator(allocator);
  CHECK(allocator.live(0) == 0);
}

TEST_CASE("a child by clone() can fork while another thread held a lock of the allocator") {
  hm_free(hm_malloc(HM_NEAR, 100));
  std::atomic<bool> is_locked{false}, is_over{false};
  std::thread holder([&] {
    const os::LockGuard guard(process_allocator.decay.purge_lock);
    is_locked = true;
    while (!is_over)
      std::this_thread::yield();
  });
  while (!is_locked)
    std::this_thread::yield();
  CHECK(ends_in_clone([] { return test::status_in_child([] { return true; }) == 0; }));
  is_over = true;
  holder.join();
}

TEST_CASE("a part of a mapping that shrinks joins the rest of it") {
  if (!node_policies_work()) return;
  PlannedAllocator allocator("rule far map=anonymous\n");
  const Mapped whole(allocator, 20);
  const auto perform = [](void* old, std::size_t old_bytes, std::size_t bytes, int flags, void*) {
    return mremap(old, old_bytes, bytes, flags);
  };
  struct Shrunk {
    std::size_t from, to;
    std::int64_t live;
  };
  for (const Shrunk& each : {Shrunk{10, 5, 15}, Shrunk{5, 3, 13}, Shrunk{3, 1, 11}}) {
    MappingOrigin own;
    ResizeCall call{whole.origin().begin, each.from * page, each.to * page};
    call.perform = perform;
    CHECK(allocator.mappings().resize(call, own) == whole.at);
    CHECK(allocator.live(0) == each.live * static_cast<std::int64_t>(page));
    const Mapped other(allocator, 3); // use memory of origins that are gone
    const Mapped another(allocator, 4);
    CHECK(allocator.live(0) == (each.live + 7) * static_cast<std::int64_t>(page));
  }
}

TEST_CASE("globals of a program are placed by name") {
  if (!node_policies_work()) return;
  PlannedAllocator allocator(
      "rule far globals=name: range=..4KiB\nrule far globals=name:none.so\n");
  REQUIRE(allocator.error.empty());
  CHECK(allocator.live(0) == page);
  CHECK(allocator.live(1) == 0);
  CHECK_FALSE(allocator.mappings().active());
}

TEST_CASE("a tier in a file holds no mappings: the rule has no effect, and the others do") {
  PlannedAllocator allocator("rule file map=anonymous\nrule near size=..9\n");
  CHECK(allocator.error.empty());
  CHECK(allocator.mappings().rules().count == 0);
}

TEST_CASE("rules for mappings and for blocks are numbered together") {
  PlannedAllocator allocator("rule near size=..9\nrule near map=heap\nrule near\n");
  CHECK(allocator.error.empty());
  CHECK(allocator.mappings().rules().rules[0].number == 2);
}
