#include "alloc/fork.hpp"

#include <atomic>
#include <cstring>
#include <utility>

#include "alloc/allocator.hpp"
#include "alloc/diagnostics.hpp"
#include "alloc/fork_locks.hpp"
#include "os/address_space.hpp"
#include "os/file.hpp"
#include "os/page_copier.hpp"
#include "os/process.hpp"
#include "os/unprepared_child.hpp"
#include "tier/mapping.hpp"

namespace nearfar::alloc {

namespace {

/// The child's copy of a tier in a file.
struct TierCopy {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  os::LibraryDescriptor file; ///< of a copy in a file
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

/// Calls visit(offset, bytes) for each part of a tier with spans that may have been written; holes
/// in the file stay holes. Skips free runs and guard spans (the inaccessible last span of a large
/// block).
template <class Visit>
void for_used_parts(const RunAllocator& runs, const Visit& visit) {
  const std::uint32_t used = runs.used_spans();
  std::uint32_t guard = used;
  std::uint32_t begin = 0; // of the part that ends at i
  const auto end_part = [&](std::uint32_t end, std::uint32_t next) {
    if (end > begin)
      visit(std::size_t{begin} << span_shift, std::size_t{end - begin} << span_shift);
    begin = next;
  };
  for (std::uint32_t i = 0; i < used; ++i) {
    const Span& span = runs.window().spans[runs.first_span() + i];
    const SpanKind kind = span.kind();
    if (kind == SpanKind::free_head) {
      const std::uint32_t length = span.extent.load(std::memory_order_relaxed);
      end_part(i, i + length);
      i += length - 1;
      continue;
    }
    if (process_allocator.settings.guard && kind == SpanKind::large)
      guard = i + span.extent.load(std::memory_order_relaxed) - 1;
    if (i == guard || !runs.may_be_written(runs.first_span() + i)) end_part(i, i + 1);
  }
  end_part(used, used);
}

void copy_used(const RunAllocator& runs, const std::byte* from, const TierCopy& copy) {
  os::PageCopier copier(copy.memory, copy.bytes);
  for_used_parts(runs, [&](std::size_t at, std::size_t bytes) {
    copier.copy(copy.memory + at, from + at, bytes);
  });
}

bool open_copy(const RunAllocator& runs, const TierOptions& options, TierCopy& copy) {
  if (options.fork == ForkPolicy::make_private) {
    copy.memory = os::map_anonymous(copy.bytes);
    return copy.memory != nullptr;
  }
  Result<os::File> file = tier::open_backing(options.spec);
  if (!file) return false;
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

/// Whether the child gets a copy of a tier that has used this many bytes.
bool needs_copy(ForkPolicy policy, std::size_t bytes) {
  switch (policy) {
  case ForkPolicy::make_private: return bytes > 0; // otherwise new memory
  case ForkPolicy::copy: return true;
  case ForkPolicy::deny: return false;
  }
  __builtin_unreachable();
}

void prepare_copy(TierHeap& tier, TierCopy& copy) {
  const TierOptions& options = tier.runs.backing().options;
  copy.bytes = used_bytes(tier.runs);
  if (!needs_copy(options.fork, copy.bytes)) return;
  if (copy.bytes == 0) copy.bytes = span_bytes; // neither mappings nor files can be empty
  if (open_copy(tier.runs, options, copy)) {
    copy_used(tier.runs, tier.base(), copy);
    return;
  }
  drop_copy(copy);
  log_error("cannot copy tier %s for a child process: the child will not have this tier",
            tier.name());
}

/// Removes a tier from the child: accesses to its blocks fault, its allocations fail. The thread's
/// stacks leak, because an interrupted call may be using them.
void remove_in_child(TierHeap& tier) {
  const auto number = static_cast<unsigned>(&tier - process_allocator.tiers);
  if (this_thread_cache->is_owned())
    forget_quarantined(process_allocator.window, *this_thread_cache, number);
  this_thread_cache->tiers[number] = &empty_stacks; // so that its cached blocks are not allocated
  process_allocator.choose_home();
  process_allocator.arenas.lose(tier);
  tier.remove_in_child(fork_interrupted_call());
}

bool adopt_private(TierHeap& tier, const TierCopy& copy) {
  const std::size_t all = std::size_t{tier.runs.limit_spans()} << span_shift;
  const std::size_t writable = std::size_t{tier.runs.writable_spans()} << span_shift;
  if (os::reserve_fixed(tier.base(), all) != 0) return false;
  if (copy.memory != nullptr && os::move_mapping(copy.memory, tier.base(), copy.bytes) != 0)
    return false;
  if (os::make_writable(tier.base(), tier.base() + writable) != 0) return false;
  TierBacking& backing = tier.runs.backing();
  backing.file_bytes = 0;
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

/// Replaces the tier's memory in the child. Returns false if the child does not get the tier.
bool adopt_memory(TierHeap& tier, const TierCopy& copy) {
  const ForkPolicy policy = tier.runs.backing().options.fork;
  if (policy == ForkPolicy::deny) return false;
  if (copy.memory == nullptr && needs_copy(policy, used_bytes(tier.runs))) return false;
  return policy == ForkPolicy::copy ? adopt_file(tier, copy) : adopt_private(tier, copy);
}

void adopt_copy(TierHeap& tier, TierCopy& copy_of_tier) {
  TierCopy copy = std::exchange(copy_of_tier, TierCopy{});
  TierBacking& backing = tier.runs.backing();
  const bool grows_by_descriptor = backing.file.get() >= 0;
  backing.file.close();
  if (!adopt_memory(tier, copy)) {
    drop_copy(copy);
    remove_in_child(tier);
  } else if (grows_by_descriptor) {
    backing.file = copy.file;
  } else {
    copy.file.close();
  }
}

/// Takes over the blocks of threads that the child does not have. The stacks of these caches for a
/// removed tier are abandoned, so that a thread that takes such a cache does not get that tier's
/// blocks.
void adopt_thread_caches() {
  process_allocator.caches.retire_others([](ThreadCache& cache) {
    forget_quarantine(cache);
    process_allocator.empty_cache(cache);
    for (unsigned t = 0; t < tier_count; ++t)
      if (!process_allocator.tiers[t].ready()) cache.tiers[t] = &empty_stacks;
  });
}

// os::at_fork() blocks signals from before the first lock until after the last, so that no handler
// forks in between.

/// Whether before_fork() acquired the locks. A child that no handler prepared cannot wait for
/// locks, and its own children are as it is.
constinit std::atomic<bool> has_locks{false};

void before_fork() NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
  if (os::is_unprepared_child()) return has_locks.store(false, std::memory_order_relaxed);
  lock_for_fork();
  has_locks.store(true, std::memory_order_relaxed);
  process_allocator.variables.copy_for_child();
  for_file_tiers(prepare_copy);
}

void after_in_parent() NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
  if (!has_locks.load(std::memory_order_relaxed)) return;
  for (TierCopy& copy : copies)
    drop_copy(copy);
  process_allocator.variables.drop_copies();
  unlock_in_parent();
}

void after_in_child() NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
  if (!has_locks.load(std::memory_order_relaxed)) return;
  os::mark_prepared();
  reset_locks_in_child();
  if (this_thread_cache->is_owned()) this_thread_cache->thread = os::thread_number();
  for_file_tiers(adopt_copy);
  process_allocator.variables.adopt_copies();
  if (!fork_interrupted_call()) adopt_thread_caches();
}

} // namespace

void register_fork_handlers() {
  os::watch_children();
  os::at_fork(before_fork, after_in_parent, after_in_child);
}

} // namespace nearfar::alloc
