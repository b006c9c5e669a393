#include "alloc/fork.hpp"

#include <cstring>

#include "alloc/cache.hpp"
#include "alloc/decay.hpp"
#include "alloc/metadata.hpp"
#include "alloc/settings.hpp"
#include "alloc/tier_making.hpp"
#include "alloc/trouble.hpp"
#include "alloc/variables.hpp"
#include "os/address_space.hpp"
#include "os/file.hpp"
#include "os/process.hpp"
#include "tier/mapping.hpp"

namespace nearfar::alloc {

namespace {

/// What a child will get of a tier in a file.
struct Copy {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  int fd = -1; ///< of the copied file, -1 for a private copy
};
constinit Copy copies[tier_count];

template <class Visit>
void for_file_tiers(const Visit& visit) {
  for (unsigned t = 0; t < tier_count; ++t)
    if (tiers[t].ready() && !tiers[t].runs.medium().anonymous) visit(t, tiers[t].runs);
}

std::size_t used_bytes(const Runs& runs) { return std::size_t{runs.used_spans()} << span_shift; }

/// Copies spans that may have been written, so that no hole of the file is filled. Free runs are
/// left out, and guards, the last spans of large blocks, which cannot be read.
void copy_used(const Runs& runs, const std::byte* from, std::byte* to) {
  std::uint32_t guard = runs.used_spans();
  for (std::uint32_t i = 0; i < runs.used_spans(); ++i) {
    const Span& span = geometry.spans[runs.first_span() + i];
    const auto kind = static_cast<SpanKind>(span.kind.load(std::memory_order_relaxed));
    if (kind == SpanKind::free_head) {
      i += span.extent.load(std::memory_order_relaxed) - 1;
      continue;
    }
    if (settings.guard && kind == SpanKind::large)
      guard = i + span.extent.load(std::memory_order_relaxed) - 1;
    if (i == guard || !runs.any_written(runs.first_span() + i)) continue;
    const std::size_t at = std::size_t{i} << span_shift;
    std::memcpy(to + at, from + at, span_bytes);
  }
}

bool open_copy(const Runs& runs, const Options& options, Copy& copy) {
  if (options.fork == ForkPolicy::make_private) {
    copy.memory = os::map_anonymous(copy.bytes);
    return copy.memory != nullptr;
  }
  Result<os::File> file = tier::open_backing(options.spec);
  if (!file) return false;
  const std::uint64_t size = std::uint64_t{runs.limit_spans()} << span_shift;
  if (os::set_file_size(file->fd(), size) != 0 || os::reserve_part(file->fd(), 0, copy.bytes) != 0)
    return false;
  copy.memory = os::reserve_space_at(copy.bytes, os::page_bytes);
  if (copy.memory == nullptr) return false;
  copy.fd = file->release();
  return os::map_file_at(copy.memory, copy.bytes, copy.fd, 0, false, os::Place::replace) == 0;
}

void drop_copy(Copy& copy) {
  if (copy.memory != nullptr) os::unmap(copy.memory, copy.bytes);
  if (copy.fd >= 0) os::close_descriptor(copy.fd);
  copy = Copy{};
}

void prepare_copy(unsigned tier, Runs& runs) {
  const Options& options = runs.medium().options;
  Copy& copy = copies[tier];
  copy.bytes = used_bytes(runs);
  if (options.fork == ForkPolicy::deny || copy.bytes == 0) return;
  if (open_copy(runs, options, copy)) {
    copy_used(runs, tier_base(tier), copy.memory);
    return;
  }
  drop_copy(copy);
  say("no room to copy tier %s for a child: it will not have it", tiers[tier].name);
}

/// The tier is not there in the child: its accesses fault, its allocations fail.
void take_away(unsigned tier) {
  os::close_descriptor(tiers[tier].runs.medium().fd);
  os::unmap(tier_base(tier), tier_span_bytes());
  if (geometry.reserved) os::reserve_fixed(tier_base(tier), tier_span_bytes());
  tiers[tier].state.store(TierState::absent);
  drop_stacks(tier); // its blocks would be handed out
}

bool adopt_private(unsigned tier, Runs& runs, const Copy& copy) {
  std::byte* base = tier_base(tier);
  const std::size_t all = std::size_t{runs.limit_spans()} << span_shift;
  if (os::map_anonymous_at(base, all, os::Place::replace, false) != 0) return false;
  if (copy.bytes > 0 && os::move_mapping(copy.memory, base, copy.bytes) != 0) return false;
  os::close_descriptor(runs.medium().fd);
  Medium& medium = runs.medium();
  medium.fd = -1;
  medium.anonymous = medium.mapped = medium.known_zero = true;
  medium.by_chunk = medium.sync = false;
  return true;
}

bool adopt_file(unsigned tier, Runs& runs, const Copy& copy) {
  const std::size_t all = std::size_t{runs.limit_spans()} << span_shift;
  if (os::map_file_at(tier_base(tier), all, copy.fd, 0, runs.medium().sync, os::Place::replace) !=
      0)
    return false;
  os::unmap(copy.memory, copy.bytes);
  os::close_descriptor(runs.medium().fd);
  runs.medium().fd = copy.fd;
  return true;
}

void settle_in_child(unsigned tier, Runs& runs) {
  const Copy copy = copies[tier];
  copies[tier] = Copy{};
  const ForkPolicy policy = runs.medium().options.fork;
  bool adopted = false;
  if (copy.memory != nullptr)
    adopted = copy.fd >= 0 ? adopt_file(tier, runs, copy) : adopt_private(tier, runs, copy);
  else if (policy != ForkPolicy::deny && copy.bytes == 0) // nothing was used: private is enough
    adopted = adopt_private(tier, runs, copy);
  if (!adopted) take_away(tier);
}

template <class Each>
void for_locks(const Each& each) {
  each(making_lock());
  each(caches_lock());
  for (TierHeap& tier : tiers) {
    if (!tier.ready()) continue;
    for (SlabClass& c : tier.classes)
      each(c.lock());
    each(tier.runs.lock());
  }
}

void before_fork() {
  purge_lock().lock();
  for_locks([](os::Lock& lock) { lock.lock(); });
  lock_metadata();
  copy_variables_for_child();
  for_file_tiers(prepare_copy);
}

void after_in_parent() {
  for (Copy& copy : copies)
    drop_copy(copy);
  drop_variable_copies();
  unlock_metadata();
  for_locks([](os::Lock& lock) { lock.unlock(); });
  purge_lock().unlock();
}

void after_in_child() {
  reset_metadata_lock();
  for_locks([](os::Lock& lock) { lock.reset(); });
  purge_lock().reset();
  reset_decay();
  if (own_cache()) this_cache->thread = os::thread_number();
  for_file_tiers(settle_in_child);
  adopt_variable_copies();
  close_other_caches();
}

} // namespace

void watch_forks() { os::at_fork(before_fork, after_in_parent, after_in_child); }

} // namespace nearfar::alloc
