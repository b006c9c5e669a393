#include <algorithm>
#include <cerrno>
#include <sys/mman.h>

#include "alloc/errno_saved.hpp"
#include "alloc/placed_mappings.hpp"
#include "os/signals.hpp"

namespace nearfar::alloc {

namespace {

bool has_failed(const void* result) { return result == MAP_FAILED; }

std::byte* pointer(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

std::uintptr_t whole_pages(std::uintptr_t bytes) {
  return (bytes + os::page_bytes - 1) & ~(os::page_bytes - 1);
}

} // namespace

/// The first rule that names the call site of `own`, nullptr if there is none.
const MappingRule* PlacedMappings::rule_of_site(const MappingOrigin& own) const {
  const MappingRule* found =
      std::find_if(rules_->begin(), rules_->end(), [&](const MappingRule& rule) {
        return rule.kind == MappedKind::by_site && matches(rule, own);
      });
  return found != rules_->end() ? found : nullptr;
}

void* PlacedMappings::resize(const ResizeCall& call, MappingOrigin& own) {
  update_frames(own);
  const os::SignalsBlocked blocked;
  const os::LockGuard guard(lock); // until the old range is forgotten: it may be mapped again
  const MappedInterval* found =
      table_.first_in(call.old_begin, call.old_begin + std::max<std::size_t>(call.old_bytes, 1));
  SharedOrigin* before = found != nullptr ? found->shared : nullptr;
  const bool is_placed = found != nullptr && found->begin <= call.old_begin;
  const int tier_before = found != nullptr && found->rule != nullptr ? found->rule->tier : -1;
  void* result =
      call.perform(pointer(call.old_begin), call.old_bytes, call.bytes, call.flags, call.target);
  if (has_failed(result) && errno == EFAULT) result = resize_parts(call);
  if (has_failed(result)) return result;
  const ErrnoSaved saved;
  own.begin = reinterpret_cast<std::uintptr_t>(result);
  own.bytes = whole_pages(call.bytes);
  if (is_placed) own.kind = before->origin.kind;
  if (const MappingRule* rule = rule_of_site(own); rule != nullptr) {
    if (!call.keeps_old) forget({call.old_begin, call.old_begin + call.old_bytes});
    forget({own.begin, own.end()});
    place(own, nullptr, {own.begin, own.end()}, os::page_bytes,
          rule->tier == tier_before ? Pages::in_tier : Pages::present);
  } else if (SharedOrigin* after = before != nullptr ? table_.share(before->origin) : nullptr;
             after != nullptr) {
    MappingTable::keep(after);
    follow(call, own.begin, *after);
    table_.drop(after);
  } else if (own.begin != call.old_begin) {
    forget({own.begin, own.end()});
  }
  return result;
}

/// The kernel resizes and moves nothing whose parts have different policies (EFAULT), so each part is
/// resized or moved by itself. Returns the result of the call: failure also if it has one part.
void* PlacedMappings::resize_parts(const ResizeCall& call) {
  const std::uintptr_t end = call.old_begin + whole_pages(call.old_bytes);
  const MappedInterval* first = table_.first_in(call.old_begin, end);
  if (call.keeps_old || call.bytes < call.old_bytes || first == nullptr || first->end >= end)
    return MAP_FAILED;
  const MappedInterval* last = first;
  for (const MappedInterval* each = first; each != nullptr && each->begin < end;
       each = table_.next(*each))
    last = each;
  const std::uintptr_t last_begin = last->begin;
  const std::size_t growth = whole_pages(call.bytes) - (end - call.old_begin);
  if ((call.flags & MREMAP_FIXED) == 0 &&
      !has_failed(call.perform(pointer(last_begin), end - last_begin, end - last_begin + growth, 0,
                               nullptr)))
    return pointer(call.old_begin);
  if ((call.flags & MREMAP_MAYMOVE) == 0) return MAP_FAILED;
  return move_parts(call, first, last, growth);
}

/// Moves the intervals `first` to `last`, the last one with `growth` more bytes.
void* PlacedMappings::move_parts(const ResizeCall& call, const MappedInterval* first,
                                 const MappedInterval* last, std::size_t growth) {
  const bool fixed = (call.flags & MREMAP_FIXED) != 0;
  const std::uintptr_t end = call.old_begin + whole_pages(call.old_bytes);
  std::byte* target = fixed ? static_cast<std::byte*>(call.target)
                            : os::reserve_space_at(whole_pages(call.bytes), os::page_bytes);
  if (target == nullptr) return MAP_FAILED;
  const auto move = [&](std::uintptr_t from, std::size_t bytes, std::size_t more, std::byte* to) {
    return !has_failed(
        call.perform(pointer(from), bytes, bytes + more, MREMAP_MAYMOVE | MREMAP_FIXED, to));
  };
  std::uintptr_t at = call.old_begin;
  for (const MappedInterval* each = first; at < end && each != nullptr;
       each = each == last ? nullptr : table_.next(*each)) {
    const std::uintptr_t part_end = std::min(each->end, end);
    if (!move(at, part_end - at, each == last ? growth : 0, target + (at - call.old_begin))) break;
    at = part_end;
  }
  if (at == end) return target;
  const int code = errno;
  const std::size_t moved = at - call.old_begin;
  for (const MappedInterval* each = first; each != nullptr && each->begin < at;
       each = table_.next(*each)) {
    const std::uintptr_t begin = std::max(each->begin, call.old_begin);
    move(reinterpret_cast<std::uintptr_t>(target) + (begin - call.old_begin), each->end - begin, 0,
         pointer(begin));
  }
  if (!fixed) os::unmap(target + moved, whole_pages(call.bytes) - moved);
  errno = code;
  return MAP_FAILED;
}

/// A mapping that was placed before keeps its rules; `shared` has the origin that it had. The kernel
/// keeps the policy of its pages; bytes that it has grown by are placed.
void PlacedMappings::follow(const ResizeCall& call, std::uintptr_t begin, SharedOrigin& shared) {
  MappingOrigin& origin = shared.origin;
  if (call.old_begin == origin.begin || !rules_->are_positional) {
    origin.begin = begin;
    origin.bytes = whole_pages(call.bytes);
  } else {
    origin.begin = begin - (call.old_begin - origin.begin);
  }
  const std::uintptr_t end = begin + whole_pages(call.bytes);
  const std::size_t kept = std::min(whole_pages(call.old_bytes), end - begin);
  const bool moved = begin != call.old_begin;
  if (moved) forget({begin, end});
  MappedInterval piece;
  // In place, a piece is inserted where it was: the next search begins behind it.
  for (std::uintptr_t at = call.old_begin;
       at < call.old_begin + kept && table_.take_first(at, call.old_begin + kept, piece);) {
    at = piece.end;
    const std::uintptr_t first = piece.begin - call.old_begin + begin;
    count_removed(piece);
    MappingTable::keep(piece.shared);
    record(piece.rule, &shared, {first, first + piece.bytes()});
    table_.drop(piece.shared);
  }
  const std::uintptr_t old_end = call.old_begin + whole_pages(call.old_bytes);
  forget({call.old_begin + kept, old_end});
  if (begin + kept == end) return;
  forget({begin + kept, end});
  place(origin, nullptr, {begin + kept, end}, os::page_bytes, Pages::grown);
}

} // namespace nearfar::alloc
