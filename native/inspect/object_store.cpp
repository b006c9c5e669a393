#include "inspect/object_store.hpp"

#include <algorithm>
#include <cinttypes>

namespace nearfar::inspect {

namespace {

using poolformat::LinkEntry;
using poolformat::PoolHead;
using poolformat::StoreHead;
using poolformat::TypeEntry;

constexpr std::uint32_t max_types = 1 << 16;
constexpr std::uint64_t max_links = 1 << 20;
constexpr std::uint64_t fewest_lines = 16;

class ObjectStoreReader {
public:
  ObjectStoreReader(const PoolView& view, const Descriptor& descriptor, Findings& findings)
      : view_(view), descriptor_(descriptor), findings_(findings) {}

  ObjectStore read() {
    PoolHead head;
    const Offset at = descriptor_.root_offset;
    if (at == 0 || descriptor_.root_bytes < sizeof head || !view_.read(at, &head, sizeof head) ||
        head.magic != PoolHead::expected_magic)
      return store_;
    store_.is_nearfar = true;
    StoreHead owner;
    if (!check_pool(at, head) || head.root_bytes < sizeof owner ||
        !view_.read(head.root, &owner, sizeof owner) || owner.magic != StoreHead::expected_magic)
      return store_;
    store_.is_typed = true;
    store_.path = owner.path;
    store_.root = head.root + sizeof owner;
    store_.usable = check_owner(head, owner) && read_types(head.root, owner) && check_root(head);
    return store_;
  }

private:
  bool within_heap(Offset offset, Offset bytes) const {
    return descriptor_.in_heap(offset) && bytes <= descriptor_.heap_end() - offset;
  }

  bool check_pool(Offset at, const PoolHead& head) {
    const Offset end = at + descriptor_.root_bytes;
    if (head.pool_bytes > view_.size())
      findings_.damage("nearfar", at + offsetof(PoolHead, pool_bytes),
                       "the pool was made with %" PRIu64 " bytes; the file has %" PRIu64,
                       head.pool_bytes, view_.size());
    else if (head.root < at + sizeof head || head.root > end || head.root_bytes > end - head.root)
      findings_.damage("nearfar", at + offsetof(PoolHead, root),
                       "the owner's root of %" PRIu64 " bytes at %#" PRIx64
                       " does not lie in the root object",
                       head.root_bytes, head.root);
    else if (head.being_zeroed != 0 && !descriptor_.in_heap(head.being_zeroed))
      findings_.damage("nearfar", at + offsetof(PoolHead, being_zeroed),
                       "memory that is being freed at %#" PRIx64 " lies outside of the heap",
                       head.being_zeroed);
    else if ((head.flags & ~std::uint64_t{1}) != 0)
      findings_.damage("nearfar", at + offsetof(PoolHead, flags), "unknown flags %#" PRIx64,
                       head.flags);
    else
      return true;
    return false;
  }

  bool check_owner(const PoolHead& head, const StoreHead& owner) {
    const Offset at = head.root;
    const auto fail = [&](std::size_t field, const char* what, std::uint64_t value) {
      findings_.damage("store", at + field, "%s: %#" PRIx64, what, value);
      return false;
    };
    if (owner.path == poolformat::Path::undo) return true;
    if (owner.path != poolformat::Path::redo)
      return fail(offsetof(StoreHead, path), "unknown kind of transactions",
                  static_cast<std::uint64_t>(owner.path));
    if (owner.log_lines < fewest_lines || owner.log_lines > view_.size() / line_bytes ||
        !within_heap(owner.log, owner.log_lines * line_bytes))
      return fail(offsetof(StoreHead, log), "the log does not lie in the heap", owner.log);
    if (owner.log_start == 0)
      return fail(offsetof(StoreHead, log_start), "records count from 1", owner.log_start);
    if (owner.chunks != 0 && !within_heap(owner.chunks, sizeof(poolformat::DirectoryPage)))
      return fail(offsetof(StoreHead, chunks), "the directory of chunks does not lie in the heap",
                  owner.chunks);
    store_.log = owner.log;
    store_.lines = owner.log_lines;
    store_.start = owner.log_start;
    store_.directory = owner.chunks;
    return true;
  }

  bool read_types(Offset at, const StoreHead& owner) {
    if (owner.type_count == 0 || owner.type_count > max_types || owner.link_count > max_links ||
        !within_heap(owner.types,
                     owner.type_count * sizeof(TypeEntry) + owner.link_count * sizeof(LinkEntry))) {
      findings_.damage("store", at + offsetof(StoreHead, types),
                       "%u types with %" PRIu64 " links at %#" PRIx64 " do not lie in the heap",
                       owner.type_count, owner.link_count, owner.types);
      return false;
    }
    Window window(view_);
    std::uint64_t link = 0;
    for (std::uint32_t i = 0; i < owner.type_count; ++i) {
      const Offset entry_at = owner.types + i * sizeof(TypeEntry);
      const std::byte* bytes = window.at(entry_at, sizeof(TypeEntry));
      if (bytes == nullptr) return unreadable(entry_at, sizeof(TypeEntry));
      if (!take_type(load<TypeEntry>(bytes), entry_at, link, owner)) return false;
      link += store_.types.back().links.size();
    }
    return true;
  }

  bool take_type(const TypeEntry& entry, Offset at, std::uint64_t link, const StoreHead& owner) {
    const bool named = std::memchr(entry.name, 0, sizeof entry.name) != nullptr;
    if (!named || entry.bytes == 0 || entry.flags > TypeEntry::secret || entry.first_link != link ||
        entry.link_count > owner.link_count - link) {
      findings_.damage("types", at, "the descriptor of type %zu makes no sense",
                       store_.types.size());
      return false;
    }
    StoreType type{entry.name, entry.bytes, entry.flags != 0, {}};
    const Offset links = owner.types + owner.type_count * sizeof(TypeEntry);
    for (std::uint32_t i = 0; i < entry.link_count; ++i) {
      const Offset link_at = links + (link + i) * sizeof(LinkEntry);
      LinkEntry member;
      if (!view_.read(link_at, &member, sizeof member)) return unreadable(link_at, sizeof member);
      const Offset room = member.array != 0 ? 16 : 8;
      if (member.array > 1 || member.offset % 8 != 0 || type.bytes < room ||
          member.offset > type.bytes - room || member.target >= owner.type_count) {
        findings_.damage("types", link_at, "link %u of type %zu makes no sense", i,
                         store_.types.size());
        return false;
      }
      type.links.push_back(member);
    }
    store_.types.push_back(std::move(type));
    return true;
  }

  bool check_root(const PoolHead& head) {
    if (store_.types[0].bytes <= head.root_bytes - sizeof(StoreHead)) return true;
    findings_.damage("store", head.root, "a root of %" PRIu64 " bytes does not fit its %" PRIu64,
                     store_.types[0].bytes, head.root_bytes - sizeof(StoreHead));
    return false;
  }

  bool unreadable(Offset at, std::size_t bytes) {
    findings_.unreadable("types", at, bytes);
    return false;
  }

  const PoolView& view_;
  const Descriptor& descriptor_;
  Findings& findings_;
  ObjectStore store_;
};

} // namespace

ObjectStore read_object_store(const PoolView& view, const Descriptor& descriptor,
                              Findings& findings) {
  return ObjectStoreReader(view, descriptor, findings).read();
}

} // namespace nearfar::inspect
