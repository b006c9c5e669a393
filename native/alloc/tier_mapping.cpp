#include "alloc/tier_mapping.hpp"

#include <cstring>

#include "alloc/node_policy.hpp"
#include "os/address_space.hpp"
#include "os/file.hpp"
#include "tier/mapping.hpp"

namespace nearfar::alloc {

namespace {

Error map_error(int code, const TierOptions& options) {
  const bool maps_synced = options.spec.kind->map_sync();
  Error error = Error::make(maps_synced ? Errc::unsupported : Errc::no_space,
                            "cannot map tier %s: %s", options.spec.kind->name, std::strerror(code));
  error.os_errno = code;
  return maps_synced ? error.try_next("MAP_SYNC requires a file system mounted with -o dax on a "
                                      "pmem device; for other file systems use file:")
                     : error.try_next("specify a smaller capacity=");
}

Error policy_error(int code, const TierOptions& options) {
  Error error = Error::make(Errc::unsupported, "cannot set the policy for nodes %#lx: %s",
                            options.nodes, std::strerror(code));
  error.os_errno = code;
  return error.try_next("`nearfar topo` lists the nodes; weighted requires Linux 6.9");
}

Status reserve_backing(const TierOptions& options, int fd, std::size_t bytes) {
  if (options.spec.kind->maps == tier::Maps::device) return Done{};
  if (const int code = os::set_file_size(fd, bytes); code != 0) return map_error(code, options);
  if (options.reserve != Reserve::full) return Done{};
  if (const int code = os::reserve_part(fd, 0, bytes); code != 0)
    return Error::make(Errc::no_space, "cannot reserve %zu bytes: %s", bytes, std::strerror(code))
        .try_next("specify a smaller capacity=, or reserve=chunk");
  return Done{};
}

Status open_file(const TierOptions& options, os::LibraryDescriptor& descriptor) {
  Result<os::File> file = tier::open_backing(options.spec);
  if (!file) return file.error();
  if (options.spec.kind->maps == tier::Maps::device)
    if (Status s = tier::claim_device(options.spec, *file); !s) return s.error();
  descriptor.adopt(std::move(*file));
  return Done{};
}

Status map_file(TierHeap& tier, const TierOptions& options, std::size_t bytes) {
  TierBacking& backing = tier.runs.backing();
  if (Status s = open_file(options, backing.file); !s) return s.error();
  const int fd = backing.file.get();
  if (Status s = reserve_backing(options, fd, bytes); !s) return s.error();
  const bool device = options.spec.kind->maps == tier::Maps::device;
  const os::Place place = tier.window().reserved ? os::Place::replace : os::Place::fresh;
  std::byte* base = tier.base();
  backing.anonymous = false;
  backing.sync = options.spec.kind->map_sync();
  if (const int code = os::map_file_at(base, bytes, fd, 0, backing.sync, place); code != 0)
    return map_error(code, options);
  backing.mapped = true;
  backing.file_bytes = bytes;
  backing.by_chunk = options.reserve == Reserve::chunk && !device;
  // If the mapping can be populated, the tier grows without a descriptor (Linux 5.14).
  if (options.spec.kind->prefaults && os::populate(base, os::page_bytes) == 0) backing.file.close();
  backing.known_zero =
      !device && options.reserve != Reserve::full && os::punch(base, span_bytes) == 0;
  if (options.fork == ForkPolicy::deny) os::dont_fork(base, bytes);
  return Done{};
}

Status map_memory(TierHeap& tier, const TierOptions& options) {
  TierBacking& backing = tier.runs.backing();
  std::byte* base = tier.base();
  const std::size_t bytes = tier.slot_bytes();
  backing.mapped = tier.window().reserved;
  backing.by_chunk = !tier.window().reserved || options.spec.populate ||
                     options.has_weights || // the stripes of a chunk are its own
                     (options.policy == os::Policy::bind && options.reserve == Reserve::chunk);
  if (!tier.window().reserved) return Done{};
  if (is_striped(options)) return Done{};
  if (const int code = set_node_policy(base, bytes, options, false); code != 0)
    return policy_error(code, options);
  return Done{};
}

/// Allocates all pages now.
Status populate_tier(const TierHeap& tier, std::size_t bytes) {
  if (os::make_writable(tier.base(), tier.base() + bytes) == 0 &&
      os::populate(tier.base(), bytes) == 0)
    return Done{};
  return Error::make(Errc::no_space, "cannot populate %zu bytes of memory", bytes)
      .try_next("specify a smaller capacity=, or reserve=chunk");
}

} // namespace

Result<std::size_t> tier_capacity(const TierHeap& tier, const TierOptions& options) {
  const bool limited = options.maps_file() || options.policy == os::Policy::bind;
  if (!limited) return options.capacity;
  Result<std::size_t> room = tier::capacity(options.spec);
  if (!room) return room.error();
  const std::size_t wanted = options.capacity != 0 ? options.capacity : *room;
  const std::size_t max_bytes = tier.slot_bytes() - span_bytes;
  if (wanted <= *room && *room >= span_bytes) return wanted < max_bytes ? wanted : max_bytes;
  return Error::make(Errc::no_space,
                     "a capacity of %zu bytes does not fit in tier %s, which has "
                     "%zu bytes free",
                     wanted, options.spec.kind->name, *room)
      .try_next("specify a smaller capacity=, or free memory");
}

Status map_tier(TierHeap& tier, const TierOptions& options, std::size_t bytes) {
  tier.runs.backing().options = options;
  if (Status s = options.maps_file() ? map_file(tier, options, bytes) : map_memory(tier, options);
      !s)
    return s.error();
  advise_pages(tier.base(), options.maps_file() ? bytes : tier.slot_bytes(), options);
  const bool populate = !options.maps_file() && options.reserve == Reserve::full && bytes > 0;
  return populate ? populate_tier(tier, bytes) : Status(Done{});
}

void unmap_tier(TierHeap& tier) {
  TierBacking& backing = tier.runs.backing();
  backing.file.close();
  if (tier.window().reserved)
    os::reserve_fixed(tier.base(), tier.slot_bytes());
  else if (backing.file_bytes > 0)
    os::unmap(tier.base(), backing.file_bytes);
  backing = TierBacking{};
}

Status move_to_nodes(const TierHeap& tier, const TierOptions& options) {
  const int code = set_node_policy(tier.base(), tier.slot_bytes(), options, true);
  if (code != 0 && tier.window().reserved) return policy_error(code, options);
  return Done{};
}

void advise_pages(std::byte* base, std::size_t bytes, const TierOptions& options) {
  if (options.spec.pages == os::PageSize::transparent_huge) os::advise_huge(base, bytes, true);
  if (options.spec.pages == os::PageSize::small_4k) os::advise_huge(base, bytes, false);
}

} // namespace nearfar::alloc
