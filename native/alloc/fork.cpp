#include "alloc/fork.hpp"

#include <cstring>
#include <utility>

#include "alloc/fork_locks.hpp"
#include "alloc/lock_order.hpp"
#include "alloc/tier_making.hpp"
#include "alloc/trouble.hpp"
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
  bool in_file = false;       ///< otherwise private memory
  os::LibraryDescriptor file; ///< of the copy
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
    os::populate(to + at, span_bytes); // one call rather than sixteen faults
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
  copy.in_file = true;
  copy.file.adopt(std::move(*file));
  const int fd = copy.file.get();
  const std::uint64_t size = std::uint64_t{runs.limit_spans()} << span_shift;
  if (os::set_file_size(fd, size) != 0 || os::reserve_part(fd, 0, copy.bytes) != 0) return false;
  copy.memory = os::reserve_space_at(copy.bytes, os::page_bytes);
  return copy.memory != nullptr &&
         os::map_file_at(copy.memory, copy.bytes, fd, 0, false, os::Place::replace) == 0;
}

void drop_copy(Copy& copy) {
  if (copy.memory != nullptr) os::unmap(copy.memory, copy.bytes);
  copy.file.close();
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
  drop_stacks(tier); // its blocks would be handed out
  remove_tier(tier);
  if (fork_interrupted_call()) tiers[tier].state.store(TierState::lost);
}

bool adopt_private(unsigned tier, Runs& runs, const Copy& copy) {
  std::byte* base = tier_base(tier);
  const std::size_t all = std::size_t{runs.limit_spans()} << span_shift;
  if (os::map_anonymous_at(base, all, os::Place::replace, false) != 0) return false;
  if (copy.bytes > 0 && os::move_mapping(copy.memory, base, copy.bytes) != 0) return false;
  Medium& medium = runs.medium();
  medium.mapped_bytes = 0;
  medium.anonymous = medium.mapped = medium.known_zero = true;
  medium.by_chunk = medium.sync = false;
  return true;
}

bool adopt_file(unsigned tier, Runs& runs, const Copy& copy) {
  const std::size_t all = std::size_t{runs.limit_spans()} << span_shift;
  const bool sync = runs.medium().sync;
  const int fd = copy.file.get();
  if (os::map_file_at(tier_base(tier), all, fd, 0, sync, os::Place::replace) != 0) return false;
  os::unmap(copy.memory, copy.bytes);
  return true;
}

void settle_in_child(unsigned tier, Runs& runs) {
  Copy copy = std::exchange(copies[tier], Copy{});
  Medium& medium = runs.medium();
  const ForkPolicy policy = medium.options.fork;
  const bool grows_by_descriptor = medium.file.get() >= 0;
  medium.file.close();
  bool adopted = false;
  if (copy.memory != nullptr)
    adopted = copy.in_file ? adopt_file(tier, runs, copy) : adopt_private(tier, runs, copy);
  else if (policy != ForkPolicy::deny && copy.bytes == 0) // nothing was used: private is enough
    adopted = adopt_private(tier, runs, copy);
  if (!adopted) {
    drop_copy(copy);
    take_away(tier);
  } else if (grows_by_descriptor) {
    medium.file = copy.file;
  } else {
    copy.file.close();
  }
}

// Signals are blocked from before the first lock until after the last, so that no handler forks in
// between (os::at_fork()).

void before_fork() {
  lock_for_fork();
  copy_variables_for_child();
  for_file_tiers(prepare_copy);
}

void after_in_parent() {
  for (Copy& copy : copies)
    drop_copy(copy);
  drop_variable_copies();
  unlock_in_parent();
}

void after_in_child() {
  reset_locks_in_child();
  if (own_cache()) this_cache->thread = os::thread_number();
  for_file_tiers(settle_in_child);
  adopt_variable_copies();
  if (!fork_interrupted_call()) close_other_caches();
}

} // namespace

void watch_forks() { os::at_fork(before_fork, after_in_parent, after_in_child); }

} // namespace nearfar::alloc
