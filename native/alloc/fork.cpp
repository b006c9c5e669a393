#include "alloc/fork.hpp"

#include <cstring>
#include <utility>

#include "alloc/allocator.hpp"
#include "alloc/diagnostics.hpp"
#include "alloc/fork_locks.hpp"
#include "os/address_space.hpp"
#include "os/file.hpp"
#include "os/process.hpp"
#include "tier/mapping.hpp"

namespace nearfar::alloc {

namespace {

/// The copy of a tier in a file for the child.
struct TierCopy {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  bool in_file = false;       ///< otherwise private memory
  os::LibraryDescriptor file; ///< of the copy
};
constinit TierCopy copies[tier_count];

/// Calls visit(tier, copy) for each tier in a file.
template <class Visit>
void for_file_tiers(const Visit& visit) {
  for (unsigned t = 0; t < tier_count; ++t)
    if (TierHeap& tier = process_allocator.tiers[t]; tier.ready() && !tier.runs.backing().anonymous)
      visit(tier, copies[t]);
}

std::size_t used_bytes(const RunAllocator& runs) {
  return std::size_t{runs.used_spans()} << span_shift;
}

/// Copies spans that may have been written, so that holes in the file stay holes. Skips free runs,
/// and guards, which are the last spans of large blocks and cannot be read.
void copy_used(const RunAllocator& runs, const std::byte* from, std::byte* to) {
  std::uint32_t guard = runs.used_spans();
  for (std::uint32_t i = 0; i < runs.used_spans(); ++i) {
    const Span& span = runs.window().spans[runs.first_span() + i];
    const SpanKind kind = span.kind();
    if (kind == SpanKind::free_head) {
      i += span.extent.load(std::memory_order_relaxed) - 1;
      continue;
    }
    if (process_allocator.settings.guard && kind == SpanKind::large)
      guard = i + span.extent.load(std::memory_order_relaxed) - 1;
    if (i == guard || !runs.may_be_written(runs.first_span() + i)) continue;
    const std::size_t at = std::size_t{i} << span_shift;
    os::populate(to + at, span_bytes); // one call instead of sixteen faults
    std::memcpy(to + at, from + at, span_bytes);
  }
}

bool open_copy(const RunAllocator& runs, const TierOptions& options, TierCopy& copy) {
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

void drop_copy(TierCopy& copy) {
  if (copy.memory != nullptr) os::unmap(copy.memory, copy.bytes);
  copy.file.close();
  copy = TierCopy{};
}

void prepare_copy(TierHeap& tier, TierCopy& copy) {
  const TierOptions& options = tier.runs.backing().options;
  copy.bytes = used_bytes(tier.runs);
  if (options.fork == ForkPolicy::deny || copy.bytes == 0) return;
  if (open_copy(tier.runs, options, copy)) {
    copy_used(tier.runs, tier.base(), copy.memory);
    return;
  }
  drop_copy(copy);
  log_error("no memory to copy tier %s for a child: the child will not have it", tier.name());
}

/// Removes a tier from the child: accesses to its blocks fault, its allocations fail. The thread's
/// stacks are not freed: a fork in a signal handler may have interrupted a use of them.
void remove_in_child(TierHeap& tier) {
  const auto number = static_cast<unsigned>(&tier - process_allocator.tiers);
  if (this_thread_cache->is_owned()) forget_quarantined(*this_thread_cache, number);
  this_thread_cache->tiers[number] = &empty_stacks; // its blocks would be allocated
  tier.remove_in_child(fork_interrupted_call());
}

bool adopt_private(TierHeap& tier, const TierCopy& copy) {
  const std::size_t all = std::size_t{tier.runs.limit_spans()} << span_shift;
  if (os::map_anonymous_at(tier.base(), all, os::Place::replace, false) != 0) return false;
  if (copy.bytes > 0 && os::move_mapping(copy.memory, tier.base(), copy.bytes) != 0) return false;
  TierBacking& backing = tier.runs.backing();
  backing.mapped_bytes = 0;
  backing.anonymous = backing.mapped = backing.known_zero = true;
  backing.by_chunk = backing.sync = false;
  return true;
}

bool adopt_file(TierHeap& tier, const TierCopy& copy) {
  const std::size_t all = std::size_t{tier.runs.limit_spans()} << span_shift;
  const bool sync = tier.runs.backing().sync;
  const int fd = copy.file.get();
  if (os::map_file_at(tier.base(), all, fd, 0, sync, os::Place::replace) != 0) return false;
  os::unmap(copy.memory, copy.bytes);
  return true;
}

void adopt_copy(TierHeap& tier, TierCopy& copy_of_tier) {
  TierCopy copy = std::exchange(copy_of_tier, TierCopy{});
  TierBacking& backing = tier.runs.backing();
  const ForkPolicy policy = backing.options.fork;
  const bool grows_by_descriptor = backing.file.get() >= 0;
  backing.file.close();
  bool adopted = false;
  if (copy.memory != nullptr)
    adopted = copy.in_file ? adopt_file(tier, copy) : adopt_private(tier, copy);
  else if (policy != ForkPolicy::deny && copy.bytes == 0) // nothing was used: private is enough
    adopted = adopt_private(tier, copy);
  if (!adopted) {
    drop_copy(copy);
    remove_in_child(tier);
  } else if (grows_by_descriptor) {
    backing.file = copy.file;
  } else {
    copy.file.close();
  }
}

/// Takes over the blocks of threads that the child does not have.
void adopt_thread_caches() {
  process_allocator.caches.destroy_others([](ThreadCache& cache) {
    forget_quarantine(cache);
    for (unsigned t = 0; t < tier_count; ++t)
      process_allocator.flush_stacks(cache, t);
  });
}

// os::at_fork() blocks signals from before the first lock until after the last, so that no handler
// forks in between.

void before_fork() NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
  lock_for_fork();
  process_allocator.variables.copy_for_child();
  for_file_tiers(prepare_copy);
}

void after_in_parent() NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
  for (TierCopy& copy : copies)
    drop_copy(copy);
  process_allocator.variables.drop_copies();
  unlock_in_parent();
}

void after_in_child() NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
  reset_locks_in_child();
  if (this_thread_cache->is_owned()) this_thread_cache->thread = os::thread_number();
  for_file_tiers(adopt_copy);
  process_allocator.variables.adopt_copies();
  if (!fork_interrupted_call()) adopt_thread_caches();
}

} // namespace

void register_fork_handlers() { os::at_fork(before_fork, after_in_parent, after_in_child); }

} // namespace nearfar::alloc
