// Two sorted lists in a typed pool, and elements that move between them, one transaction each.
//
// Recovery of the redo log runs on every image: what is compiled for this file is the whole redo
// path of persist (CMakeLists.txt).
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "crash/tool/medium.hpp"
#include "nearfar/persist.hpp"

namespace nearfar::crash {

namespace {

using persist::field;
using persist::ptr;

struct move_pool;
struct node {
  field<std::uint64_t> key;
  field<std::uint64_t> value;
  field<ptr<node, move_pool>> next;
};
using Link = field<ptr<node, move_pool>>;
struct lists {
  std::array<Link, 2> first;
  std::array<field<std::uint64_t>, 2> size;
};
struct move_pool {
  using root = lists;
  static constexpr char name[] = "move";
  static constexpr std::uint64_t layouts[] = {13343960391042815828u};
};
static_assert(persist::detail::check_layout<move_pool>());

using Tx = persist::tx<move_pool>;

constexpr std::size_t log_bytes = 2048; ///< it comes round every dozen transactions

/// The link to the first node whose key is not below `key`.
Link& place_of(Link& first, std::uint64_t key) {
  Link* at = std::addressof(first);
  while (*at && at->get()->key.get() < key)
    at = std::addressof(at->get()->next);
  return *at;
}

bool is_at(const Link& link, std::uint64_t key) { return link && link.get()->key.get() == key; }

/// Which list holds `key`; 2 if none does.
std::size_t list_of(lists& root, std::uint64_t key) {
  for (std::size_t list = 0; list < 2; ++list)
    if (is_at(place_of(root.first[list], key), key)) return list;
  return 2;
}

void insert(Tx& tx, std::uint64_t key, std::uint64_t value) {
  lists& root = tx.root();
  if (list_of(root, key) != 2) return;
  Link& link = place_of(root.first[0], key);
  auto made = tx.make<node>(key, value, link.get());
  tx.publish(link, std::move(made));
  root.size[0].set(tx, root.size[0].get() + 1);
}

void remove(Tx& tx, std::uint64_t key) {
  lists& root = tx.root();
  const std::size_t list = list_of(root, key);
  if (list == 2) return;
  Link& link = place_of(root.first[list], key);
  const auto old = link.get();
  link.set(tx, old->next.get());
  tx.free(old);
  root.size[list].set(tx, root.size[list].get() - 1);
}

void move(Tx& tx, std::uint64_t key) {
  lists& root = tx.root();
  const std::size_t list = list_of(root, key);
  if (list == 2) return;
  Link& from = place_of(root.first[list], key);
  const auto moved = from.get();
  from.set(tx, moved->next.get());
  Link& to = place_of(root.first[1 - list], key);
  moved->next.set(tx, to.get());
  to.set(tx, moved);
  root.size[list].set(tx, root.size[list].get() - 1);
  root.size[1 - list].set(tx, root.size[1 - list].get() + 1);
}

/// An entry's key is twice that of its element, plus the number of its list.
class MoveSubject final : public Subject {
public:
  Status create(std::byte* pool, std::size_t bytes) override {
    std::memset(pool + ImageSource::first, 0xA5, bytes - ImageSource::first); // is not fresh
    return keep(persist::ObjectStore::create(storage(pool, bytes), schema,
                                             {persist::Path::redo, log_bytes}));
  }
  const char* open(std::byte* pool, std::size_t bytes, const Moment&) override {
    const Status opened = keep(persist::ObjectStore::open(storage(pool, bytes), schema));
    if (opened) return nullptr;
    std::memcpy(why_, opened.error().what, sizeof why_);
    return why_;
  }
  Status apply(const Operation& operation) override {
    persist::Transaction untyped(*store_, store_->common_guard());
    Tx tx = persist::detail::access::transaction<move_pool>(untyped, root());
    switch (operation.what) {
    case Operation::What::insert: insert(tx, operation.key, operation.value); break;
    case Operation::What::remove: remove(tx, operation.key); break;
    case Operation::What::move: move(tx, operation.key); break;
    }
    return untyped.commit();
  }
  void apply_to_model(const Operation& operation, Contents& model) const override {
    const auto known = std::find_if(model.begin(), model.end(), [&](const auto& entry) {
      return entry.first / 2 == operation.key;
    });
    if (operation.what == Operation::What::insert) {
      if (known == model.end()) model.emplace_back(2 * operation.key, operation.value);
    } else if (known != model.end()) {
      if (operation.what == Operation::What::move)
        known->first ^= 1;
      else
        model.erase(known);
    }
  }
  const char* contents(Contents& found) override {
    for (std::size_t list = 0; list < 2; ++list) {
      const std::size_t before = found.size();
      for (auto at = root().first[list].get(); at; at = at->next.get()) {
        if (found.size() > before && found.back().first / 2 >= at->key.get())
          return "the keys of a list do not ascend";
        found.emplace_back(2 * at->key.get() + list, at->value.get());
      }
      if (found.size() - before != root().size[list].get())
        return "the size of a list is not the number of its nodes";
    }
    return nullptr;
  }
  std::uint64_t leaked_bytes() override {
    std::uint64_t taken = allocated();
    for (const Link& first : root().first)
      for (auto at = first.get(); at; at = at->next.get())
        --taken;
    return taken * sizeof(node); // as a huge number, what is linked but free
  }
  void close() override {
    if (store_) store_->abandon();
    store_.reset();
  }

private:
  static constexpr std::size_t root_at = 4096;
  inline static const persist::Schema schema = persist::detail::schema_of<move_pool>();

  persist::StorageView storage(std::byte* pool, std::size_t bytes) {
    close();
    base_ = persist::detail::base_of<move_pool> = pool;
    source_ = std::make_unique<ImageSource>(pool, bytes);
    return {pool,
            bytes,
            pool + root_at,
            ImageSource::first - root_at,
            persist::Durability::fence,
            false,
            source_.get(),
            nullptr,
            "image"};
  }
  Status keep(Result<std::unique_ptr<persist::ObjectStore>> store) {
    if (!store) return store.error();
    store_ = std::move(*store);
    return Done{};
  }
  lists& root() { return *reinterpret_cast<lists*>(store_->root()); }

  /// Objects that the heap's bitmaps call allocated.
  std::uint64_t allocated() const {
    std::uint64_t bits = 0;
    const auto* head = reinterpret_cast<const poolformat::StoreHead*>(base_ + root_at);
    for (std::uint64_t at = head->chunks; at != 0;) {
      const auto* page = reinterpret_cast<const poolformat::DirectoryPage*>(base_ + at);
      for (const std::uint64_t slot : page->slots) {
        if (slot == 0) continue;
        const auto* chunk = reinterpret_cast<const poolformat::ChunkHead*>(base_ + slot);
        const auto* words = reinterpret_cast<const std::uint64_t*>(chunk + 1);
        for (std::uint32_t i = 0; i < (chunk->count + 63) / 64; ++i)
          bits += static_cast<std::uint64_t>(std::popcount(words[i]));
      }
      at = page->next;
    }
    return bits;
  }

  std::byte* base_ = nullptr;
  std::unique_ptr<ImageSource> source_;
  std::unique_ptr<persist::ObjectStore> store_;
  char why_[sizeof(Error::what)] = "";
};

} // namespace

std::unique_ptr<Subject> move_subject() { return std::make_unique<MoveSubject>(); }

} // namespace nearfar::crash
