#include "structures/objects.hpp"

#include <cstring>

#include "persist/failure.hpp"

namespace nearfar::structures {

namespace {

ListLinks& links_of(PMEMoid entry, std::size_t links) {
  return *reinterpret_cast<ListLinks*>(entry.off + links);
}

void link_first(ListHead& head, PMEMoid entry, std::size_t links) {
  ListLinks& own = links_of(entry, links);
  if (head.first.off == 0) {
    own = {entry, entry};
  } else {
    const PMEMoid last = links_of(head.first, links).previous;
    own = {head.first, last};
    links_of(last, links).next = entry;
    links_of(head.first, links).previous = entry;
  }
  head.first = entry;
}

void unlink(ListHead& head, PMEMoid entry, std::size_t links) {
  const ListLinks own = links_of(entry, links);
  links_of(own.previous, links).next = own.next;
  links_of(own.next, links).previous = own.previous;
  if (head.first.off == entry.off) head.first = own.next.off == entry.off ? OID_NULL : own.next;
}

} // namespace

Error pool_error(const char* doing) {
  const int code = errno;
  const bool full = persist::is_full(code);
  Error error = Error::make(full ? Errc::no_space : Errc::os_error, "%s failed: %s", doing,
                            persist::reason(code));
  error.os_errno = code;
  return error.try_next(full ? "make a larger pool" : "check the pool with pmempool check");
}

Status PoolObjects::allocate(PMEMoid& where, std::size_t bytes, std::uint64_t type,
                             bool zeroed) const {
  const std::uint64_t flags = zeroed ? POBJ_XALLOC_ZERO : 0;
  if (pmemobj_xalloc(pool_, &where, bytes, type, flags, nullptr, nullptr) != 0)
    return pool_error("allocating");
  return Done{};
}

Status DramObjects::allocate(PMEMoid& where, std::size_t bytes, std::uint64_t, bool zeroed) {
  const PMEMoid made = take(bytes, zeroed);
  if (made.off == 0) return pool_error("allocating");
  where = made;
  return Done{};
}

PMEMoid DramObjects::take(std::size_t bytes, bool zeroed) {
  errno = ENOMEM; // should it fail
  if (bytes <= largest_node_bytes) {
    Result<std::uint64_t> link = heap_.take(bytes);
    if (!link) return OID_NULL;
    if (zeroed) std::memset(reinterpret_cast<void*>(*link), 0, bytes);
    return {0, *link};
  }
  Result<os::MappedRange> range = os::map_range(bytes, os::PageSize::system, -1, false); // zeros
  if (!range) return OID_NULL;
  const auto address = reinterpret_cast<std::uintptr_t>(range->data());
  large_.emplace(address, std::move(*range));
  return {0, address};
}

void DramObjects::give_back(PMEMoid object, std::size_t bytes) {
  if (bytes <= largest_node_bytes)
    heap_.give_back(object.off, bytes);
  else
    large_.erase(object.off);
}

PMEMoid DramObjects::list_insert(ListHead& head, std::size_t links, std::size_t bytes,
                                 std::uint64_t, Fill fill, void* argument) {
  const PMEMoid made = take(bytes, false);
  if (made.off == 0) return made;
  fill(nullptr, at<void>(made), argument);
  link_first(head, made, links);
  return made;
}

bool DramObjects::list_remove(ListHead& head, std::size_t links, PMEMoid entry, std::size_t bytes) {
  unlink(head, entry, links);
  give_back(entry, bytes);
  return true;
}

bool DramObjects::list_move(ListHead& from, ListHead& to, std::size_t links, PMEMoid entry) {
  unlink(from, entry, links);
  link_first(to, entry, links);
  return true;
}

} // namespace nearfar::structures
