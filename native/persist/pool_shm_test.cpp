// Pools in DRAM (shm:, numa:), which emulate persistent memory.
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

#include "os/numa.hpp"
#include "persist/pool.hpp"
#include "test_support.hpp"

using namespace nearfar;
using persist::Pool;

namespace {

/// Runs `check` in a child process, so that its pools are the first of a process.
template <class Check>
bool in_a_child(const Check& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

constexpr persist::Layout layout{"shm_test", 1};

} // namespace

TEST_CASE(
    "a pool on a tmpfs is emulated persistent memory, and a pool in a file next to it is not") {
  if (!std::filesystem::is_directory("/dev/shm")) return;
  CHECK(in_a_child([] {
    Result<Pool> pool = Pool::create(*tier::parse("shm:/dev/shm,populate"), layout, {8 << 20, 64});
    if (!pool) return false;
    const test::Folder folder;
    Result<Pool> file =
        Pool::create(*tier::parse(("file:" + folder.path()).c_str()), layout, {8 << 20, 64});
    if (!pool->is_pmem() || !pool->emulated() || !file) return false;
    return !file->is_pmem() && file->durability() == persist::Durability::msync;
  }));
}

TEST_CASE("a pool in a node's memory is emulated, lies there, and leaves nothing") {
  os::NodeMemory memory;
  if (!os::node_memory(0, memory)) return; // a kernel without NUMA
  CHECK(in_a_child([] {
    const std::size_t asked = (8 << 20) + 1;
    Result<Pool> pool = Pool::create(*tier::parse("numa:0"), layout, {asked, 64});
    std::size_t elsewhere = 0;
    return bool(pool) && pool->is_pmem() && pool->emulated() && pool->path() == "numa:0" &&
           pool->bytes() == (8 << 20) + 4096 &&
           os::count_elsewhere(pool->base(), pool->bytes(), 0, elsewhere) == 0 && elsewhere == 0 &&
           os::count_elsewhere(pool->base(), pool->bytes(), 1, elsewhere) == 0 &&
           elsewhere == pool->bytes() / 4096; // so it would be noticed
  }));
  const auto refused = [](const char* place, std::size_t bytes) {
    return Pool::create(*tier::parse(place), layout, {bytes, 64}).error().code;
  };
  CHECK(refused("numa:0", std::size_t{1} << 50) == Errc::no_space);
  CHECK(refused("numa:62", 8 << 20) == Errc::unsupported);
  CHECK(refused("devdax:/dev/dax99.9", 8 << 20) == Errc::unsupported);
  CHECK(Pool::open(*tier::parse("numa:0"), layout).error().code == Errc::bad_input);
}

TEST_CASE("a pool that is touched everywhere may be asked for by any size") {
  if (!std::filesystem::is_directory("/dev/shm")) return;
  CHECK(in_a_child([] {
    const std::size_t asked = (8 << 20) + 1;
    Result<Pool> pool = Pool::create(*tier::parse("shm:/dev/shm,populate"), layout, {asked, 64});
    return bool(pool) && pool->bytes() == (8 << 20) + 4096;
  }));
}

TEST_CASE("shm: wants a tmpfs and fsdax: a DAX file system") {
  const test::Folder folder;
  const auto made = [&](const char* kind) {
    return Pool::create(*tier::parse((kind + folder.path("a.pool")).c_str()), layout,
                        {8 << 20, 64});
  };
  CHECK(made("shm:").error().code == Errc::bad_input);
  CHECK(in_a_child([&] { return made("fsdax:").error().code == Errc::unsupported; }));
  CHECK(folder.empty());
}

TEST_CASE("the tier of an existing pool file follows from its file system") {
  const test::Folder folder;
  CHECK(
      Pool::create(*tier::parse(("file:" + folder.path("a.pool")).c_str()), layout, {8 << 20, 64}));
  Result<tier::Spec> place = persist::place_of(folder.path("a.pool").c_str());
  REQUIRE(place);
  CHECK(place->kind == tier::find_kind("file"));
  CHECK(persist::place_of(folder.path("b.pool").c_str()).error().code == Errc::not_found);
}
