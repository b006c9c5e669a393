// A sorted list that survives power failures: sorted_list TIER KEY... adds keys, prints them all.
//
// For example: sorted_list file:/tmp/list.pool 5 3 9. The program has no flushes and no snapshots:
// transactions contain them, and a store outside of a transaction does not compile.
#include <cstdio>
#include <cstdlib>
#include <nearfar/persist.hpp>

using namespace nearfar::persist;

struct list_pool;
struct node {
  field<std::int64_t> key;
  field<ptr<node, list_pool>> next;
};
struct list {
  field<ptr<node, list_pool>> first;
  field<std::uint64_t> size;
};
struct list_pool {
  using root = list;
  static constexpr char name[] = "sorted list";
  static constexpr std::uint64_t layouts[] = {8146666118056889086u};
};

/// Returns the link to `key`, or the link where it would be inserted.
field<ptr<node, list_pool>>& place_of_key(list& all, std::int64_t key) {
  auto* link = std::addressof(all.first);
  while (*link && (*link)->key < key)
    link = std::addressof((*link)->next);
  return *link;
}

nearfar::Status insert(pool<list_pool>& pool, std::int64_t key) {
  return pool.transact([&](tx<list_pool>& tx) {
    auto& link = place_of_key(tx.root(), key);
    if (link && link->key == key) return;
    tx.publish(link, tx.make<node>(key, link.get()));
    tx.root().size.set(tx, tx.root().size + 1);
  });
}

int fail(const nearfar::Error& error) {
  std::fprintf(stderr, "sorted_list: %s\n", error.what);
  if (error.next[0] != '\0') std::fprintf(stderr, "  next: %s\n", error.next);
  return error.code == nearfar::Errc::bad_input ? 2 : 3;
}

int main(int count, char** words) {
  if (count < 2) return std::fputs("usage: sorted_list TIER [KEY...]\n", stderr), 2;
  auto opened = pool<list_pool>::open_or_create(words[1]);
  if (!opened) return fail(opened.error());
  for (int i = 2; i < count; ++i)
    if (auto done = insert(*opened, std::atoll(words[i])); !done) return fail(done.error());
  for (auto n = opened->root().first.get(); n; n = n->next)
    std::printf("%ld\n", n->key.get());
  std::printf("%lu keys\n", opened->root().size.get());
}
