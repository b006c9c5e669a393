#include "alloc/placed_mappings.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "alloc/allocator.hpp"
#include "alloc/diagnostics.hpp"
#include "alloc/errno_saved.hpp"
#include "alloc/loaded_objects.hpp"
#include "alloc/node_policy.hpp"
#include "alloc/rule_statistics.hpp"
#include "base/frame_walk.hpp"
#include "os/numa.hpp"
#include "os/signals.hpp"

namespace nearfar::alloc {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::size_t pages_at_unmap = 64; ///< sampled in one interval
constexpr std::size_t pages_at_end = 1024;

std::uintptr_t round_up(std::uintptr_t value, std::size_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

os::Area area_of(const MappingOrigin& origin) { return {origin.begin, origin.end()}; }

std::byte* pointer(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

/// A number of the chain of calls, never 0.
std::uint64_t key_of(const MappingOrigin& origin) {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < origin.chain_length; ++i)
    key = hash_with(key, origin.chain[i]);
  return key | 1;
}

void reset_policy(os::Area area) {
  os::set_policy(pointer(area.begin), area.end - area.begin, os::Policy::local, 0, false);
}

} // namespace

void PlacedMappings::start(Allocator& allocator) {
  allocator_ = &allocator;
  rules_ = &allocator.plan.mapping;
  if (rules_->count == 0) return;
  lowest_.store(UINTPTR_MAX, relaxed);
  copy_policies();
  place_globals();
  if (!rules_->has_mappings) return;
  if (rules_->longest > 0) find_frames();
  const os::Area heap = os::program_break();
  if (heap.begin != 0) {
    heap_begin_ = heap.begin & ~(os::page_bytes - 1);
    grow_heap(heap.end);
  }
  active_.store(true, relaxed);
}

/// `bind` is applied as `prefer`, so that a full node does not end the program: further pages go to
/// other nodes.
void PlacedMappings::copy_policies() {
  for (unsigned t = 0; t < tier_count; ++t) {
    if (!allocator_->tiers[t].ready()) continue;
    policies_[t] = allocator_->tiers[t].runs.node_policy();
    if (policies_[t].policy == os::Policy::bind) policies_[t].policy = os::Policy::prefer;
  }
}

/// Whether all addresses of the chain are in objects whose frames were found.
bool PlacedMappings::is_known(const MappingOrigin& own) {
  const os::Area* first = objects_;
  const os::Area* last = objects_ + object_count_;
  return std::all_of(own.chain, own.chain + own.chain_length, [=](std::uintptr_t address) {
    return std::any_of(first, last, [=](const os::Area& object) {
      return address >= object.begin && address < object.end;
    });
  });
}

/// Resolves the frames of rules again when a call chain is first seen and has an address in an
/// object that was loaded since the last resolution. Not more often, because this takes the
/// loader's lock: a thread that holds it while another one forks leaves it locked in the child
/// (glibc 2.36).
void PlacedMappings::update_frames(const MappingOrigin& own) {
  if (rules_->longest == 0) return;
  const ErrnoSaved saved;
  const std::uint64_t key = key_of(own);
  std::atomic<std::uint64_t>& seen = seen_chains_[(key >> 1) % std::size(seen_chains_)];
  if (seen.load(relaxed) == key) return;
  bool known = false;
  {
    const os::SignalsBlocked blocked;
    const os::LockGuard guard(lock);
    known = is_known(own);
  }
  if (!known) find_frames();
  seen.store(key, relaxed);
}

void PlacedMappings::find_frames() {
  const LoadedObjects objects;
  const std::size_t count = static_cast<std::size_t>(objects.end() - objects.begin());
  auto* areas = reinterpret_cast<os::Area*>(os::map_anonymous(count * sizeof(os::Area)));
  if (areas == nullptr) return;
  const os::SignalsBlocked blocked;
  const os::LockGuard guard(lock);
  forget_frames(*rules_);
  for (std::size_t i = 0; i < count; ++i) {
    resolve_frames(*rules_, objects.begin()[i]);
    areas[i] = objects.begin()[i].extent;
  }
  if (objects_ != nullptr)
    os::unmap(reinterpret_cast<std::byte*>(objects_), object_count_ * sizeof(os::Area));
  objects_ = areas;
  object_count_ = count;
}

/// The placed mapping that `own` replaces a part of, nullptr if there is none.
SharedOrigin* PlacedMappings::find_outer(const MappingOrigin& own) {
  const MappedInterval* found = table_.first_in(own.begin, own.end());
  if (found == nullptr) return nullptr;
  const MappingOrigin& outer = found->shared->origin;
  return own.begin >= outer.begin && own.end() <= outer.end() ? found->shared : nullptr;
}

void PlacedMappings::add(const MappingOrigin& own, bool fixed, std::size_t page_bytes) {
  const ErrnoSaved saved;
  update_frames(own);
  const os::SignalsBlocked blocked; // a handler may map memory or fork
  const os::LockGuard guard(lock);
  SharedOrigin* outer = fixed ? find_outer(own) : nullptr;
  MappingTable::keep(outer);
  forget(area_of(own));
  place(own, outer != nullptr ? &outer->origin : nullptr, area_of(own), page_bytes,
        Pages::may_be_present);
  table_.drop(outer);
}

/// Applies the rules to an area of `own`, which no interval overlaps. Bytes outside of all ranges
/// are recorded too, if a rule knows the mapping: it may grow, or be replaced in part.
void PlacedMappings::place(const MappingOrigin& own, const MappingOrigin* outer, os::Area area,
                           std::size_t page_bytes, Pages pages) {
  const bool is_known = std::any_of(rules_->begin(), rules_->end(), [&](const MappingRule& rule) {
    return matches(rule, own) || (outer != nullptr && matches(rule, *outer));
  });
  if (!is_known) return;
  SharedOrigin* shared = table_.share(outer != nullptr ? *outer : own);
  if (shared != nullptr) shared->origin.object = nullptr;
  for (std::uintptr_t at = area.begin; at < area.end;) {
    const MappingPart part = next_part(*rules_, own, outer, at, area.end, page_bytes);
    const os::Area found = {at, part.end};
    if (part.rule != nullptr) {
      place_part(*part.rule, shared, found, pages);
    } else {
      if (pages == Pages::grown) reset_policy(found);
      record(nullptr, shared, found);
    }
    at = part.end;
  }
  table_.free_if_unused(shared);
}

/// Places and records an area; stripes separately, because each is a mapping of the kernel's, and
/// mremap() handles one per call.
void PlacedMappings::place_part(MappingRule& rule, SharedOrigin* shared, os::Area area,
                                Pages pages) {
  const NodePolicy& policy = policies_[rule.tier];
  const bool placed = set_policy(rule, area, pages);
  count_placed(rule.statistics, placed, area.end - area.begin);
  if (!is_striped(policy)) return record(&rule, shared, area);
  for (std::uintptr_t at = area.begin; at < area.end;) {
    const std::uintptr_t end = stripe_at(policy, area.begin, area.end, at).end;
    record(&rule, shared, {at, end});
    at = end;
  }
}

/// Pages are moved only if some are present, because that stops all CPUs for a moment.
bool PlacedMappings::set_policy(const MappingRule& rule, os::Area area, Pages pages) {
  const NodePolicy& policy = policies_[rule.tier];
  if (policy.policy == os::Policy::local) { // where the kernel puts it
    if (pages == Pages::present || pages == Pages::grown) reset_policy(area);
    return true;
  }
  const bool move =
      pages == Pages::present || (pages != Pages::in_tier && os::is_present(pointer(area.begin)));
  const int code = set_node_policy(pointer(area.begin), area.end - area.begin, policy, move);
  if (code == 0) return true;
  if (!refused_)
    log_error("rule %u of the plan: the kernel refuses the memory policy of %zu bytes: %s; %s",
              rule.number, static_cast<std::size_t>(area.end - area.begin), std::strerror(code),
              code == EPERM ? "allow mbind(), in a container by --cap-add SYS_NICE"
                            : "further refusals are only counted");
  refused_ = true;
  return false;
}

/// Adjacent mappings become one interval, as they become one mapping of the kernel, unless they are
/// stripes, or rules depend on where a mapping begins.
void PlacedMappings::record(MappingRule* rule, SharedOrigin* shared, os::Area area) {
  using Neighbors = MappingTable::Neighbors;
  if (shared == nullptr) return;
  const bool has_stripes = rule != nullptr && policies_[rule->tier].has_weights;
  const bool separate = has_stripes || rules_->are_positional;
  if (!table_.insert({area.begin, area.end, rule, shared},
                     separate ? Neighbors::separate : Neighbors::merged))
    return;
  if (rule != nullptr) {
    const auto bytes = static_cast<std::int64_t>(area.end - area.begin);
    count_live(rule->statistics, rule->live_bytes.fetch_add(bytes, relaxed) + bytes);
  }
  if (area.begin < lowest_.load(relaxed)) lowest_.store(area.begin, relaxed);
  if (area.end > highest_.load(relaxed)) highest_.store(area.end, relaxed);
}

/// Counts an interval that was removed from the table as gone.
void PlacedMappings::count_removed(const MappedInterval& removed) {
  if (removed.rule == nullptr) return;
  removed.rule->live_bytes.fetch_sub(static_cast<std::int64_t>(removed.bytes()), relaxed);
}

void PlacedMappings::forget(os::Area area) {
  MappedInterval removed;
  while (table_.take_first(area.begin, area.end, removed)) {
    count_removed(removed);
    table_.free_if_unused(removed.shared);
  }
}

void PlacedMappings::remove(std::uintptr_t begin, std::size_t bytes) {
  const os::Area area = {begin, round_up(begin + bytes, os::page_bytes)};
  if (area.begin >= highest_.load(relaxed) || area.end <= lowest_.load(relaxed) ||
      area.end < area.begin)
    return;
  const ErrnoSaved saved;
  const os::SignalsBlocked blocked;
  const os::LockGuard guard(lock);
  sample(area, pages_at_unmap);
  forget(area);
}

void PlacedMappings::grow_heap(std::uintptr_t end) {
  if (heap_begin_ == 0) return;
  const ErrnoSaved saved;
  const os::SignalsBlocked blocked;
  const os::LockGuard guard(lock);
  const std::uintptr_t begin = std::max(heap_end_, heap_begin_);
  end = round_up(end, os::page_bytes);
  heap_end_ = end;
  if (end < begin) return forget({end, begin});
  MappingOrigin own;
  own.kind = MappedKind::heap;
  own.begin = heap_begin_;
  own.bytes = end - heap_begin_;
  place(own, nullptr, {begin, end}, os::page_bytes, Pages::may_be_present);
}

void PlacedMappings::sample() {
  if (rules_ == nullptr || os::is_unprepared_child()) return;
  const os::SignalsBlocked blocked;
  const os::LockGuard guard(lock);
  sample({0, UINTPTR_MAX}, pages_at_end);
}

/// Samples the intervals of an area. Stripes, which are adjacent and have one origin, are sampled
/// together.
void PlacedMappings::sample(os::Area area, std::size_t most) {
  const MappedInterval* each = table_.first_in(area.begin, area.end);
  while (each != nullptr && each->begin < area.end) {
    const MappedInterval& first = *each;
    std::uintptr_t end = first.begin;
    for (; each != nullptr && each->rule == first.rule && each->shared == first.shared &&
           each->begin == end;
         each = table_.next(*each))
      end = each->end;
    const std::uintptr_t begin = std::max(first.begin, area.begin);
    if (first.rule != nullptr)
      sample_mapping(first.rule->statistics, begin, std::min(end, area.end) - begin, most);
  }
}

} // namespace nearfar::alloc
