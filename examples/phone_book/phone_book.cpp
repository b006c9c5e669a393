// A phone book that survives power failures: phone_book TIER [NAME NUMBER]... adds entries and
// prints all of them.
//
// For example: phone_book file:/tmp/book.pool ada 36 bob 41. It is nearfar's own map in a pool:
// every put() is atomic, and durable when it returns (structures/map.hpp).
#include <cstdio>
#include <structures/map.hpp>

using namespace nearfar;
using Book = structures::Map<structures::Pmem, structures::Bytes, structures::Bytes>;

Result<persist::Pool> open_or_create(const tier::Spec& place) {
  constexpr persist::Layout layout{"phone book", 1};
  Result<persist::Pool> opened = persist::Pool::open(place, layout);
  if (opened || opened.error().code != Errc::not_found) return opened;
  return persist::Pool::create(place, layout, {64 << 20, sizeof(structures::MapRoot)});
}

int fail(const Error& error) { return std::fprintf(stderr, "%s\n%s\n", error.what, error.next), 3; }

int main(int count, char** words) {
  if (count < 2 || count % 2 != 0)
    return std::fputs("usage: phone_book TIER [NAME NUMBER]...\n", stderr), 2;
  Result<tier::Spec> place = tier::parse(words[1]);
  if (!place) return fail(place.error());
  Result<persist::Pool> pool = open_or_create(*place);
  if (!pool) return fail(pool.error());
  structures::Pmem medium(*pool);
  auto book = Book::open(medium, *reinterpret_cast<structures::MapRoot*>(pool->root()));
  if (!book) return fail(book.error());
  for (int i = 2; i < count; i += 2)
    if (auto done = (*book)->put(words[i], words[i + 1]); !done) return fail(done.error());
  (*book)->for_each([](const std::string& name, const std::string& number) {
    std::printf("%s %s\n", name.c_str(), number.c_str());
  });
  std::printf("%zu entries\n", (*book)->size());
}
