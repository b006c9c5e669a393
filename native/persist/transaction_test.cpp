#include "persist/transaction.hpp"

#include <doctest/doctest.h>

#include "persist/test_memory.hpp"

using namespace nearfar;
using namespace nearfar::persist;

namespace {

constexpr TypeEntry types[] = {{"root", 64, 0, 0, 0}};
const Schema schema{types, {}, 1};

} // namespace

TEST_CASE("a write of another size at the same address rolls back") {
  test::Memory memory(1 << 20, ObjectStore::root_bytes(schema));
  guard on;
  Result<std::unique_ptr<ObjectStore>> store =
      ObjectStore::create(memory.storage(), schema, {Path::redo, 2048});
  REQUIRE(store);
  auto* root = reinterpret_cast<std::uint64_t*>((*store)->root());
  const std::uint64_t value = 7;
  Transaction transaction(**store, on);
  transaction.write(root, &value, 4);
  transaction.write(root, &value, 4);
  CHECK_FALSE(transaction.failed());
  transaction.write(root, &value, 8);
  const Status done = transaction.commit();
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::bad_input);
  CHECK(*root == 0);
}
