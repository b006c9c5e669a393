// Pools that the typed layer itself made, as the inspector sees them. This test is linked with
// `persist`; the layer `inspect` must not be, because the code that reads the bytes of a pool must
// not be the code that wrote them.
#include "inspect/typed.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>

#include "inspect/pool.hpp"
#include "inspect/reach.hpp"
#include "nearfar/persist.hpp"
#include "test_support.hpp"

using namespace nearfar;
using namespace nearfar::inspect;
using persist::field;
using persist::ptr;

namespace {

struct chain_pool;
struct link_node {
  field<std::uint64_t> key;
  field<ptr<link_node, chain_pool>> next;
};
struct chain {
  field<ptr<link_node, chain_pool>> first;
};
struct chain_pool {
  using root = chain;
  static constexpr char name[] = "chain";
  static constexpr std::uint64_t layouts[] = {5767105102746348217u};
};
using Chains = persist::pool<chain_pool>;

void push(const Chains& pool, std::uint64_t key) {
  REQUIRE(bool(pool.transact([&](auto& tx) {
    auto made = tx.template make<link_node>(key, tx.root().first.get());
    tx.publish(tx.root().first, std::move(made));
  })));
}

/// The file as it lies there now, as another process would read it.
std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

struct Seen {
  PoolReport pool;
  Reach reach;
};
Seen look(const std::vector<std::byte>& bytes) {
  Seen seen;
  seen.reach = find_lost(MemoryView(bytes), seen.pool);
  return seen;
}

} // namespace

TEST_CASE("a typed pool is described by its types, and unlinked objects are lost, on either path") {
  for (const persist::Path path : {persist::Path::redo, persist::Path::undo}) {
    const test::Folder folder = test::Folder::quick();
    const std::string file = folder.path("chain.pool");
    persist::pool_options options;
    options.path = path;
    Result<Chains> made = Chains::create(("shm:" + file).c_str(), options);
    REQUIRE(bool(made));
    for (std::uint64_t key = 0; key < 100; ++key)
      push(*made, key);
    Seen seen = look(bytes_of(file)); // open, so that records are not written back
    CHECK(seen.pool.findings.damage_count() == 0);
    REQUIRE(seen.pool.typed.store.usable);
    REQUIRE(seen.pool.typed.store.types.size() == 2);
    CHECK(seen.pool.typed.store.types[1].name.ends_with("link_node"));
    CHECK(seen.reach.typed);
    CHECK(seen.reach.lost == 0);
    if (path == persist::Path::redo) {
      CHECK(seen.pool.typed.records.count == 100);
      CHECK(seen.pool.typed.object_chunks.objects == 100);
    }
    // The chain loses its last fifty nodes, which are not freed.
    REQUIRE(bool(made->transact([&](auto& tx) {
      auto at = tx.root().first.get();
      for (int i = 0; i < 49; ++i)
        at = at->next.get();
      at->next.set(tx, {});
    })));
    seen = look(bytes_of(file));
    CHECK(seen.pool.findings.damage_count() == 0);
    CHECK(seen.reach.lost == 50);
    REQUIRE(seen.reach.types.size() == 1);
    CHECK(seen.reach.types[0].name.ends_with("link_node"));
    CHECK(seen.reach.types[0].heads == 1);
  }
}

TEST_CASE("damage of nearfar's own formats is named by its offset") {
  const test::Folder folder = test::Folder::quick();
  const std::string file = folder.path("chain.pool");
  {
    Result<Chains> made = Chains::create(("shm:" + file).c_str(), {});
    REQUIRE(bool(made));
    for (std::uint64_t key = 0; key < 100; ++key)
      push(*made, key);
  }
  const std::vector<std::byte> whole = bytes_of(file);
  const PoolReport sound = examine(MemoryView(whole));
  REQUIRE(sound.findings.damage_count() == 0);
  const ObjectStore& store = sound.typed.store;
  const Offset head = sound.descriptor.root_offset;
  const Offset owner = store.root - sizeof(poolformat::StoreHead);
  const auto damaged_at = [&](Offset changed, std::uint64_t word, Offset at) {
    std::vector<std::byte> image = whole;
    std::memcpy(&image[changed], &word, sizeof word);
    PoolReport pool;
    find_lost(MemoryView(image), pool);
    for (const Finding& finding : pool.findings.kept())
      if (finding.severity == Severity::damage && finding.offset == at) return true;
    return false;
  };
  CHECK(damaged_at(head + 8, 1 << 30, head + 8)); // pool_bytes
  CHECK(damaged_at(head + 16, 64, head + 16));    // root
  CHECK(damaged_at(head + 40, 2, head + 40));     // flags
  CHECK(damaged_at(owner + 16, 7, owner + 16));   // path
  CHECK(damaged_at(owner + 24, 64, owner + 24));  // types
  CHECK(damaged_at(owner + 32, 64, owner + 32));  // log
  CHECK(damaged_at(store.directory + 8, 64, store.directory + 8));
  const auto chunk = load<std::uint64_t>(&whole[store.directory + 8]);
  CHECK(damaged_at(chunk, ~std::uint64_t{0}, chunk)); // chunk_bytes
  // A link of the root that leads into the middle of an object.
  const auto first = load<std::uint64_t>(&whole[store.root]);
  CHECK(damaged_at(store.root, first + 8, store.root));
}
