#include "alloc/tier_making.hpp"

#include <cstdint>
#include <cstring>

#include "os/address_space.hpp"
#include "os/file.hpp"
#include "tier/mapping.hpp"

namespace nearfar::alloc {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

Error map_error(int code, const Options& options) {
  const bool no_sync = options.spec.kind->map_sync();
  Error error = Error::make(no_sync ? Errc::unsupported : Errc::no_space, "cannot map tier %s: %s",
                            options.spec.kind->name, std::strerror(code));
  error.os_errno = code;
  return no_sync ? error.try_next("MAP_SYNC wants a file system mounted with -o dax on a pmem "
                                  "device; file: does without")
                 : error.try_next("give it a smaller capacity=");
}

Error policy_error(int code, const Options& options) {
  Error error = Error::make(Errc::unsupported, "the kernel refuses the policy for nodes %#lx: %s",
                            options.nodes, std::strerror(code));
  error.os_errno = code;
  return error.try_next("`nearfar topo` lists the nodes; weighted wants Linux 6.9");
}

/// What the tier may span: what was told, or what is there.
Result<std::size_t> decide_capacity(const Options& options) {
  const bool limited = options.in_file() || options.policy == os::Policy::bind;
  if (!limited) return options.capacity;
  Result<std::size_t> room = tier::capacity(options.spec);
  if (!room) return room.error();
  const std::size_t wanted = options.capacity != 0 ? options.capacity : *room;
  const std::size_t most = tier_span_bytes() - span_bytes;
  if (wanted <= *room && *room >= span_bytes) return wanted < most ? wanted : most;
  return Error::make(Errc::no_space,
                     "a capacity of %zu bytes does not fit in tier %s, which has "
                     "%zu bytes free",
                     wanted, options.spec.kind->name, *room)
      .try_next("give it a smaller capacity=, or free some");
}

Status map_backing(unsigned tier, const Options& options, std::size_t bytes, Medium& medium) {
  Result<os::File> file = tier::open_backing(options.spec);
  if (!file) return file.error();
  const bool device = options.spec.kind->maps == tier::Maps::device;
  if (device)
    if (Status s = tier::claim_device(options.spec, *file); !s) return s.error();
  if (!device)
    if (const int code = os::set_file_size(file->fd(), bytes); code != 0)
      return map_error(code, options);
  if (options.reserve == Reserve::full && !device)
    if (const int code = os::reserve_part(file->fd(), 0, bytes); code != 0)
      return Error::make(Errc::no_space, "cannot reserve %zu bytes: %s", bytes, std::strerror(code))
          .try_next("give it a smaller capacity=, or reserve=chunk");
  const os::Place place = geometry.reserved ? os::Place::replace : os::Place::fresh;
  medium.anonymous = false;
  medium.sync = options.spec.kind->map_sync();
  if (const int code = os::map_file_at(tier_base(tier), bytes, file->fd(), 0, medium.sync, place);
      code != 0)
    return map_error(code, options);
  medium.fd = file->release();
  medium.mapped = true;
  medium.by_chunk = options.reserve == Reserve::chunk && !device;
  medium.known_zero =
      !device && options.reserve != Reserve::full && os::punch(tier_base(tier), span_bytes) == 0;
  if (options.fork == ForkPolicy::deny) os::keep_from_children(tier_base(tier), bytes);
  return Done{};
}

Status map_memory(unsigned tier, const Options& options, Medium& medium) {
  std::byte* base = tier_base(tier);
  medium.mapped = geometry.reserved;
  medium.by_chunk = !geometry.reserved || options.spec.populate ||
                    (options.policy == os::Policy::bind && options.reserve == Reserve::chunk);
  if (!geometry.reserved) return Done{};
  if (const int code = os::protect(base, tier_span_bytes(), os::Access::read_write); code != 0)
    return map_error(code, options);
  if (options.policy != os::Policy::local)
    if (const int code =
            os::set_policy(base, tier_span_bytes(), options.policy, options.nodes, false);
        code != 0)
      return policy_error(code, options);
  return Done{};
}

void advise_pages(std::byte* base, std::size_t bytes, const Options& options) {
  if (options.spec.pages == os::PageSize::transparent_huge) os::advise_huge(base, bytes, true);
  if (options.spec.pages == os::PageSize::small_4k) os::advise_huge(base, bytes, false);
}

std::uint32_t spans_within(std::size_t capacity) {
  const std::size_t most = spans_per_tier() - 1;
  const std::size_t spans = capacity >> span_shift;
  return static_cast<std::uint32_t>(capacity == 0 || spans > most ? most : spans);
}

/// A node's memory made sure of at once.
Status fill_now(unsigned tier, std::size_t bytes) {
  if (os::populate(tier_base(tier), bytes) == 0) return Done{};
  return Error::make(Errc::no_space, "cannot fill %zu bytes of memory", bytes)
      .try_next("give it a smaller capacity=, or reserve=chunk");
}

Error no_bookkeeping() {
  return Error::make(Errc::no_space, "no memory for the bookkeeping of a tier");
}

} // namespace

std::byte* tier_base(unsigned tier) {
  return reinterpret_cast<std::byte*>(geometry.base + (std::uintptr_t{tier} << geometry.shift));
}
std::size_t tier_span_bytes() { return std::size_t{1} << geometry.shift; }

bool open_plain_near() {
  Medium medium;
  medium.mapped = geometry.reserved;
  medium.by_chunk = !geometry.reserved;
  if (open_spans(0) != 0) return false;
  if (geometry.reserved &&
      os::protect(tier_base(0), tier_span_bytes(), os::Access::read_write) != 0)
    return false;
  return tiers[0].runs.open(0, spans_within(0), medium);
}

Status adjust_near(const Options& options) {
  if (options.in_file() || options.spec.populate || options.reserve != Reserve::chunk)
    return Error::make(Errc::bad_input,
                       "the near tier is dram or numa, without populate or reserve")
        .try_next("put what should lie elsewhere into HMALLOC_FAR");
  if (options.policy != os::Policy::local) {
    const int code =
        os::set_policy(tier_base(0), tier_span_bytes(), options.policy, options.nodes, true);
    if (code != 0 && geometry.reserved) return policy_error(code, options);
  }
  const os::Hold hold(tiers[0].runs.lock());
  tiers[0].runs.medium().options = options;
  tiers[0].runs.set_limit(spans_within(options.capacity));
  advise_pages(tier_base(0), tier_span_bytes(), options);
  return Done{};
}

Status open_tier(unsigned tier, const Options& options) {
  Result<std::size_t> capacity = decide_capacity(options);
  if (!capacity) return capacity.error();
  std::size_t bytes = *capacity >> span_shift << span_shift;
  if (options.spec.kind->maps == tier::Maps::device) bytes = bytes / huge_page * huge_page;
  if (open_spans(tier) != 0) return no_bookkeeping();
  Medium medium;
  medium.options = options;
  if (Status s = options.in_file() ? map_backing(tier, options, bytes, medium)
                                   : map_memory(tier, options, medium);
      !s)
    return s.error();
  advise_pages(tier_base(tier), options.in_file() ? bytes : tier_span_bytes(), options);
  if (!options.in_file() && options.reserve == Reserve::full && bytes > 0)
    if (Status s = fill_now(tier, bytes); !s) return s.error();
  if (!tiers[tier].runs.open(tier, spans_within(bytes), medium)) return no_bookkeeping();
  return Done{};
}

} // namespace nearfar::alloc
