#include "alloc/tier_making.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "alloc/cache.hpp"
#include "os/address_space.hpp"
#include "os/file.hpp"
#include "tier/mapping.hpp"

namespace nearfar::alloc {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t alignment_of_tiers = std::size_t{1} << 30;
constexpr std::size_t large_slot = alignment_of_tiers * 16; ///< where that alignment is affordable

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
Result<std::size_t> decide_capacity(unsigned tier, const Options& options) {
  const bool limited = options.in_file() || options.policy == os::Policy::bind;
  if (!limited) return options.capacity;
  Result<std::size_t> room = tier::capacity(options.spec);
  if (!room) return room.error();
  const std::size_t wanted = options.capacity != 0 ? options.capacity : *room;
  const std::size_t most = tier_span_bytes(tier) - span_bytes;
  if (wanted <= *room && *room >= span_bytes) return wanted < most ? wanted : most;
  return Error::make(Errc::no_space,
                     "a capacity of %zu bytes does not fit in tier %s, which has "
                     "%zu bytes free",
                     wanted, options.spec.kind->name, *room)
      .try_next("give it a smaller capacity=, or free some");
}

Status reserve_backing(const Options& options, int fd, std::size_t bytes) {
  if (options.spec.kind->maps == tier::Maps::device) return Done{};
  if (const int code = os::set_file_size(fd, bytes); code != 0) return map_error(code, options);
  if (options.reserve != Reserve::full) return Done{};
  if (const int code = os::reserve_part(fd, 0, bytes); code != 0)
    return Error::make(Errc::no_space, "cannot reserve %zu bytes: %s", bytes, std::strerror(code))
        .try_next("give it a smaller capacity=, or reserve=chunk");
  return Done{};
}

Status open_file(const Options& options, os::LibraryDescriptor& descriptor) {
  Result<os::File> file = tier::open_backing(options.spec);
  if (!file) return file.error();
  if (options.spec.kind->maps == tier::Maps::device)
    if (Status s = tier::claim_device(options.spec, *file); !s) return s.error();
  descriptor.adopt(std::move(*file));
  return Done{};
}

Status map_backing(unsigned tier, const Options& options, std::size_t bytes, Medium& medium) {
  if (Status s = open_file(options, medium.file); !s) return s.error();
  const int fd = medium.file.get();
  if (Status s = reserve_backing(options, fd, bytes); !s) return s.error();
  const bool device = options.spec.kind->maps == tier::Maps::device;
  const os::Place place = geometry.reserved ? os::Place::replace : os::Place::fresh;
  std::byte* base = tier_base(tier);
  medium.anonymous = false;
  medium.sync = options.spec.kind->map_sync();
  if (const int code = os::map_file_at(base, bytes, fd, 0, medium.sync, place); code != 0)
    return map_error(code, options);
  medium.mapped = true;
  medium.mapped_bytes = bytes;
  medium.by_chunk = options.reserve == Reserve::chunk && !device;
  // What is touched when it is mapped needs no descriptor to grow (before Linux 5.14 it does).
  if (options.spec.kind->prefaults && os::populate(base, os::page_bytes) == 0) medium.file.close();
  medium.known_zero =
      !device && options.reserve != Reserve::full && os::punch(base, span_bytes) == 0;
  if (options.fork == ForkPolicy::deny) os::dont_fork(base, bytes);
  return Done{};
}

Status map_memory(unsigned tier, const Options& options, Medium& medium) {
  std::byte* base = tier_base(tier);
  const std::size_t bytes = tier_span_bytes(tier);
  medium.mapped = geometry.reserved;
  medium.by_chunk = !geometry.reserved || options.spec.populate ||
                    (options.policy == os::Policy::bind && options.reserve == Reserve::chunk);
  if (!geometry.reserved) return Done{};
  if (const int code = os::protect(base, bytes, os::Access::read_write); code != 0)
    return map_error(code, options);
  if (options.policy != os::Policy::local)
    if (const int code = os::set_policy(base, bytes, options.policy, options.nodes, false);
        code != 0)
      return policy_error(code, options);
  return Done{};
}

/// The slot of a tier as it was before it was mapped: inaccessible, without pages and policy.
void unmap_tier(unsigned tier, Medium& medium) {
  medium.file.close();
  std::byte* base = tier_base(tier);
  if (geometry.reserved)
    os::reserve_fixed(base, tier_span_bytes(tier));
  else if (medium.mapped_bytes > 0)
    os::unmap(base, medium.mapped_bytes);
  medium = Medium{};
}

void advise_pages(std::byte* base, std::size_t bytes, const Options& options) {
  if (options.spec.pages == os::PageSize::transparent_huge) os::advise_huge(base, bytes, true);
  if (options.spec.pages == os::PageSize::small_4k) os::advise_huge(base, bytes, false);
}

std::uint32_t spans_within(unsigned tier, std::size_t capacity) {
  const std::size_t most = (tier_span_bytes(tier) >> span_shift) - 1;
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

std::uint32_t first_span_of(unsigned tier) {
  return tier * static_cast<std::uint32_t>(spans_per_tier()) + tiers[tier].removed_spans;
}

} // namespace

std::byte* tier_base(unsigned tier) { return span_address(first_span_of(tier)); }

std::size_t tier_span_bytes(unsigned tier) {
  return (spans_per_tier() - tiers[tier].removed_spans) << span_shift;
}

bool open_plain_near() {
  Medium medium;
  medium.mapped = geometry.reserved;
  medium.by_chunk = !geometry.reserved;
  if (open_spans(0) != 0) return false;
  if (geometry.reserved &&
      os::protect(tier_base(0), tier_span_bytes(0), os::Access::read_write) != 0)
    return false;
  return tiers[0].runs.open(first_span_of(0), spans_within(0, 0), medium);
}

Status adjust_near(const Options& options) {
  if (options.in_file() || options.spec.populate || options.reserve != Reserve::chunk)
    return Error::make(Errc::bad_input,
                       "the near tier is dram or numa, without populate or reserve")
        .try_next("put what should lie elsewhere into NEARFAR_HMALLOC_FAR");
  if (options.policy != os::Policy::local) {
    const int code =
        os::set_policy(tier_base(0), tier_span_bytes(0), options.policy, options.nodes, true);
    if (code != 0 && geometry.reserved) return policy_error(code, options);
  }
  const os::LockGuard guard(tiers[0].runs.lock());
  tiers[0].runs.medium().options = options;
  tiers[0].runs.set_limit(spans_within(0, options.capacity));
  advise_pages(tier_base(0), tier_span_bytes(0), options);
  return Done{};
}

namespace {

/// Blocks of a removed tier are no longer known as blocks, only by is_removed().
void forget_removed_blocks(unsigned tier) {
  Span* span = geometry.spans + tier * spans_per_tier();
  for (const Span* end = span + tiers[tier].removed_spans; span != end; ++span)
    if (span->kind.load(std::memory_order_relaxed) != 0)
      span->kind.store(static_cast<std::uint8_t>(SpanKind::none), std::memory_order_relaxed);
}

} // namespace

TierOpening::TierOpening(unsigned tier) : tier_(tier) {
  forget_removed_blocks(tier);
  tiers[tier].state.store(TierState::making);
  tiers[tier].reset();
  reset_past_counts(tier);
}

TierOpening::~TierOpening() {
  if (kept_) return;
  tiers[tier_].runs.close();
  unmap_tier(tier_, medium_);
  tiers[tier_].state.store(TierState::absent);
}

void TierOpening::keep() {
  kept_ = true;
  tiers[tier_].state.store(TierState::ready, std::memory_order_release);
}

Status TierOpening::map(const Options& options, std::size_t bytes) {
  medium_.options = options;
  if (Status s = options.in_file() ? map_backing(tier_, options, bytes, medium_)
                                   : map_memory(tier_, options, medium_);
      !s)
    return s.error();
  const std::size_t advised = options.in_file() ? bytes : tier_span_bytes(tier_);
  advise_pages(tier_base(tier_), advised, options);
  const bool fill = !options.in_file() && options.reserve == Reserve::full && bytes > 0;
  return fill ? fill_now(tier_, bytes) : Status(Done{});
}

Status TierOpening::open(const Options& options) {
  if (tier_span_bytes(tier_) <= span_bytes)
    return Error::make(Errc::no_space, "no address space left for a tier in slot %u", tier_);
  Result<std::size_t> capacity = decide_capacity(tier_, options);
  if (!capacity) return capacity.error();
  std::size_t bytes = *capacity >> span_shift << span_shift;
  if (options.spec.kind->maps == tier::Maps::device) bytes = bytes / huge_page * huge_page;
  if (open_spans(tier_) != 0) return no_bookkeeping();
  if (Status s = map(options, bytes); !s) return s.error();
  if (!tiers[tier_].runs.open(first_span_of(tier_), spans_within(tier_, bytes), medium_))
    return no_bookkeeping();
  return Done{};
}

void remove_tier(unsigned tier) {
  TierHeap& heap = tiers[tier];
  const std::size_t slot = spans_per_tier() << span_shift;
  const std::size_t align = slot >= large_slot ? alignment_of_tiers : huge_page;
  const std::size_t used = (std::size_t{heap.runs.highest_span()} << span_shift) - tier * slot;
  unmap_tier(tier, heap.runs.medium());
  const std::size_t removed = std::min((used + align - 1) / align * align, slot);
  heap.removed_spans = static_cast<std::uint32_t>(removed >> span_shift);
  heap.state.store(TierState::absent);
}

} // namespace nearfar::alloc
