#include "nearfar/persist.hpp"

#include <algorithm>
#include <cstdio>
#include <doctest/doctest.h>
#include <libpmemobj.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test_support.hpp"

using namespace nearfar;
using namespace nearfar::persist;

namespace {

struct list_pool;
template <class T>
using to = ptr<T, list_pool>;

struct node {
  field<std::int64_t> key;
  field<to<node>> next;
};
struct vault {
  secret_field<std::uint64_t> key;
};
struct list {
  field<to<node>> first;
  field<std::uint64_t> size;
  field<array<double, list_pool>> samples;
  field<to<vault>> secret;
};
struct list_pool {
  using root = list;
  static constexpr char name[] = "typed_test";
  static constexpr std::uint64_t layouts[] = {1, 7742608651181015958u};
};

using list_type = pool<list_pool>;

list_type make(const test::Folder& folder, Path path, bool zero_on_free = false) {
  const std::string place = "file:" + folder.path("a.pool");
  Result<list_type> made =
      list_type::create(place.c_str(), {32 << 20, path, std::size_t{64} << 10, zero_on_free});
  REQUIRE_MESSAGE(made, made.error().what);
  return std::move(*made);
}

list_type reopen(const test::Folder& folder) {
  Result<list_type> opened = list_type::open(folder.path("a.pool").c_str());
  REQUIRE_MESSAGE(opened, opened.error().what);
  return std::move(*opened);
}

void push(tx<list_pool>& t, std::int64_t key) {
  fresh<node, list_pool> made = t.make<node>(key, t.root().first.get());
  t.publish(t.root().first, std::move(made));
  t.root().size.set(t, t.root().size + 1);
}

std::vector<std::int64_t> keys(const list& root) {
  std::vector<std::int64_t> found;
  for (to<node> n = root.first; n; n = n->next)
    found.push_back(n->key);
  return found;
}

/// A field compares with everything that its value compares with. If two operators fit equally
/// well, the comparison is ambiguous, and this is false.
template <class T, class Other>
concept compares = requires(const field<T>& a, const Other& b) {
  a == b;
  a != b;
  b != a;
};
static_assert(compares<std::uint64_t, unsigned long long>);
static_assert(compares<std::uint64_t, int>);
static_assert(compares<std::uint64_t, field<std::uint64_t>>);
static_assert(compares<to<node>, to<node>>);
static_assert(compares<to<node>, std::nullptr_t>);

constexpr Path paths[] = {Path::redo, Path::undo};

} // namespace

TEST_CASE("what was committed is there after closing and opening") {
  for (const Path path : paths) {
    const test::Folder folder = test::Folder::quick();
    {
      list_type pool = make(folder, path);
      for (int i = 0; i < 100; ++i)
        REQUIRE(pool.transact([&](auto& t) { push(t, i); }));
      REQUIRE(pool.transact([&](auto& t) { // unlink and free the first
        const to<node> first = t.root().first;
        t.root().first.set(t, first->next);
        t.root().size.set(t, t.root().size - 1);
        t.free(first);
      }));
    }
    list_type pool = reopen(folder);
    CHECK(pool.path() == path);
    CHECK(pool.root().size == 99);
    const auto found = pool.read([](const auto& r) { return keys(r.root()); });
    REQUIRE(found.size() == 99);
    CHECK(found.front() == 98);
    CHECK(found.back() == 0);
  }
}

TEST_CASE("a pool whose creation a crash has interrupted is refused, or finished") {
  enum class Made { without_root, root, store_without_magic };
  for (const Made made : {Made::without_root, Made::root, Made::store_without_magic}) {
    CAPTURE(static_cast<int>(made));
    const test::Folder folder;
    const std::string path = folder.path("a.pool");
    const Layout layout{list_pool::name, layout_version<list_pool>};
    const std::string place = "file:" + path;
    const std::size_t root_bytes = ObjectStore::root_bytes(detail::schema_of<list_pool>());
    if (made == Made::without_root) {
      const std::string text =
          std::string(layout.name) + ";version=" + std::to_string(layout.version);
      pmemobj_close(pmemobj_create(path.c_str(), text.c_str(), 32 << 20, 0600));
    } else if (made == Made::root) {
      REQUIRE(Pool::create(*tier::parse(place.c_str()), layout, {32 << 20, root_bytes}));
    } else {
      make(folder, Path::redo);
      Result<Pool> pool = Pool::open(*tier::parse(place.c_str()), layout);
      REQUIRE(pool);
      reinterpret_cast<StoreHead*>(pool->root())->magic = 0;
    }
    Result<list_type> refused = list_type::open(place.c_str());
    REQUIRE(!refused);
    CHECK(refused.error().code == Errc::bad_input);
    {
      Result<list_type> finished = list_type::open_or_create(place.c_str());
      REQUIRE_MESSAGE(finished, finished.error().what);
      CHECK(finished->file().bytes() == 32 << 20);
      REQUIRE(finished->transact([](tx<list_pool>& t) { push(t, 7); }));
    }
    Result<list_type> opened = list_type::open_or_create(place.c_str());
    REQUIRE(opened);
    CHECK(keys(opened->root()) == std::vector<std::int64_t>{7});
  }
}

TEST_CASE("a transaction sees its own writes, others do not before it commits") {
  const test::Folder folder = test::Folder::quick();
  list_type pool = make(folder, Path::redo);
  REQUIRE(pool.transact([&](auto& t) {
    auto& size = t.root().size;
    for (std::uint64_t i = 1; i <= 40; ++i) { // beyond what is kept inline
      size.set(t, i);
      CHECK(size == i);
      push(t, static_cast<std::int64_t>(i));
      CHECK(size == i + 1);
    }
    CHECK(keys(t.root()).size() == 40);
    std::uint64_t seen = 1;
    std::thread([&] { seen = pool.root().size; }).join();
    CHECK(seen == 0);
  }));
  CHECK(pool.root().size == 41);
  CHECK(keys(pool.root()).size() == 40);
}

TEST_CASE("an abort, an exception and a failure within leave no trace") {
  for (const Path path : paths) {
    const test::Folder folder = test::Folder::quick();
    {
      list_type pool = make(folder, path);
      REQUIRE(pool.transact([&](auto& t) { push(t, 1); }));
      const Status refused = pool.transact([&](auto& t) -> Status {
        push(t, 2);
        return Error::make(Errc::bad_input, "no");
      });
      CHECK(refused.error().code == Errc::bad_input);
      CHECK_THROWS_AS(static_cast<void>(pool.transact([&](auto& t) {
                        push(t, 3);
                        throw std::runtime_error("no");
                      })),
                      std::runtime_error);
      CHECK(keys(pool.root()) == std::vector<std::int64_t>{1});
      // Inner transactions are part of the outer one; a failure of theirs takes it all back.
      REQUIRE(pool.transact([&](auto& t) {
        push(t, 4);
        CHECK(pool.transact([&](auto& inner) { push(inner, 5); }));
      }));
      CHECK(!pool.transact([&](auto& t) {
        push(t, 6);
        try {
          static_cast<void>(pool.transact([&](auto& inner) {
            push(inner, 7);
            throw std::runtime_error("no");
          }));
        } catch (const std::runtime_error&) {
        }
      }));
      CHECK(keys(pool.root()) == std::vector<std::int64_t>{5, 4, 1});
    }
    CHECK(keys(reopen(folder).root()) == std::vector<std::int64_t>{5, 4, 1});
  }
}

TEST_CASE("a full pool gives an error, and all is as it was") {
  for (const Path path : paths) {
    const test::Folder folder = test::Folder::quick();
    list_type pool = make(folder, path);
    std::size_t count = 0;
    for (;;) {
      const Status s = pool.transact([&](auto& t) {
        t.publish(t.root().samples, t.template make_array<double>(50'000)); // leaks the last one
        push(t, 1);
      });
      if (!s) {
        CHECK(s.error().code == Errc::no_space);
        break;
      }
      ++count;
    }
    CHECK(count > 20);
    CHECK(pool.root().size == count);
    CHECK(keys(pool.root()).size() == count);
    const Status freed = pool.transact([&](auto& t) {
      t.free(t.root().samples.get());
      t.root().samples.set(t, {});
    });
    REQUIRE_MESSAGE(freed, freed.error().what);
    const Status again = pool.transact([&](auto& t) { // what was freed can be had again
      t.publish(t.root().samples, t.template make_array<double>(50'000));
    });
    CHECK_MESSAGE(again, again.error().what);
  }
}

TEST_CASE("arrays are written as raw memory and linked by transactions") {
  for (const Path path : paths) {
    const test::Folder folder = test::Folder::quick();
    {
      list_type pool = make(folder, path);
      for (const std::size_t n : {std::size_t{10}, std::size_t{100'000}}) {
        const Status done = pool.transact([&](auto& t) {
          if (t.root().samples.get()) t.free(t.root().samples.get());
          auto made = t.template make_array<double>(n);
          CHECK(made.raw().size() == n);
          for (const double value : made.raw())
            CHECK(value == 0);
          t.publish(t.root().samples, std::move(made));
        });
        REQUIRE_MESSAGE(done, done.error().what);
      }
      const array<double, list_pool> samples = pool.root().samples;
      for (std::size_t i = 0; i < samples.size(); ++i)
        samples[i] = static_cast<double>(i);
      pool.persist(samples);
    }
    list_type pool = reopen(folder);
    REQUIRE(pool.root().samples.get().size() == 100'000);
    CHECK(pool.root().samples.get()[99'999] == 99'999.0);
  }
}

TEST_CASE("secrets are overwritten when their object is freed, and in the log") {
  const test::Folder folder = test::Folder::quick();
  constexpr std::uint64_t secret = 0x5ec4e75ec4e75ec4;
  {
    list_type pool = make(folder, Path::redo);
    REQUIRE(pool.transact(
        [&](auto& t) { t.publish(t.root().secret, t.template make<vault>(secret)); }));
    CHECK(pool.root().secret->key.reveal() == secret);
    REQUIRE(pool.transact([&](auto& t) {
      const to<vault> old = t.root().secret;
      t.root().secret.set(t, nullptr);
      t.free(old);
    }));
    REQUIRE(!pool.transact([&](auto& t) -> Status {
      const auto made = t.template make<vault>(secret);
      CHECK(made);
      return Error::make(Errc::bad_input, "no");
    }));
  }
  std::FILE* file = std::fopen(folder.path("a.pool").c_str(), "rb");
  std::vector<std::uint64_t> all((32 << 20) / 8);
  REQUIRE(std::fread(all.data(), 8, all.size(), file) == all.size());
  std::fclose(file);
  CHECK(std::count(all.begin(), all.end(), secret) == 0);
}

TEST_CASE("threads with guards of their own lose nothing") {
  const test::Folder folder = test::Folder::quick();
  list_type pool = make(folder, Path::redo);
  guard first, second;
  const auto work = [&](guard& on, auto&& body) {
    for (int i = 0; i < 300; ++i)
      CHECK(pool.transact(on, body));
  };
  std::thread a([&] { work(first, [](auto& t) { push(t, 1); }); });
  std::thread b([&] { work(first, [](auto& t) { push(t, 2); }); });
  std::thread c([&] {
    work(second, [](auto& t) {
      if (t.root().secret.get()) t.free(t.root().secret.get());
      t.publish(t.root().secret, t.template make<vault>(5u));
    });
  });
  std::size_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const std::size_t now = pool.read(first, [](const auto& r) { return keys(r.root()).size(); });
    CHECK(now >= last);
    last = now;
  }
  a.join();
  b.join();
  c.join();
  CHECK(pool.root().size == 600);
}

TEST_CASE("misuse that compiles is an error, and nothing has changed") {
  const test::Folder folder = test::Folder::quick();
  list_type pool = make(folder, Path::redo);
  REQUIRE(pool.transact([&](auto& t) { push(t, 1); }));
  CHECK(!pool.transact([&](auto& t) { // a copy in volatile memory
    node copy = *t.root().first.get();
    copy.key.set(t, 5);
  }));
  CHECK(!pool.transact([&](auto& t) { // freed twice
    t.free(t.root().first.get());
    t.free(t.root().first.get());
  }));
  CHECK(!pool.transact([&](auto& t) { // larger than the log takes
    for (int i = 0; i < 5000; ++i)
      push(t, i);
  }));
  const Status inside = pool.read([&](const auto&) { return pool.transact([](auto&) {}); });
  CHECK(inside.error().code == Errc::bad_input);
  CHECK(list_type::open(folder.path("a.pool").c_str()).error().code == Errc::unsupported);
  CHECK(keys(pool.root()) == std::vector<std::int64_t>{1});
}

namespace {
struct other_pool { // the same name and version, other types
  struct root {
    field<std::uint64_t> word;
  };
  static constexpr char name[] = "typed_test";
  static constexpr std::uint64_t layouts[] = {0, 9806326631295772963u};
};
struct older_pool {
  using root = other_pool::root;
  static constexpr char name[] = "typed_test";
  static constexpr std::uint64_t layouts[] = {9806326631295772963u};
};
} // namespace

TEST_CASE("a pool of another layout or version is refused with the reason") {
  const test::Folder folder = test::Folder::quick();
  { make(folder, Path::redo); }
  const auto says = [](const Error& error, const char* part) {
    return error.code == Errc::bad_input && std::string(error.what).find(part) != std::string::npos;
  };
  const std::string path = folder.path("a.pool");
  CHECK(says(pool<other_pool>::open(path.c_str()).error(), "its types are laid out otherwise"));
  CHECK(says(pool<older_pool>::open(path.c_str()).error(),
             "has version 2 of layout 'typed_test', and this program knows version 1"));
}

TEST_CASE("one fence a transaction") {
  const test::Folder folder = test::Folder::quick();
  list_type pool = make(folder, Path::redo);
  REQUIRE(pool.transact([&](auto& t) { push(t, 1); })); // makes the first chunk
  const auto before = storelog::counters();
  REQUIRE(pool.transact([&](auto& t) { push(t, 1); }));
  CHECK((storelog::counters() - before).fences == 1);
}
