#include "alloc/run_allocator.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <initializer_list>

#include "alloc/bits.hpp"
#include "alloc/node_policy.hpp"
#include "os/address_space.hpp"
#include "os/file.hpp"

namespace nearfar::alloc {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr unsigned linear_bins = 16;
constexpr std::uint32_t chunk_spans = (std::uint32_t{4} << 20) >> span_shift;

/// The first multiple of `unit` spans behind `first` that is not before `end`.
std::uint32_t round_up_from(std::uint32_t first, std::uint32_t end, std::uint32_t unit) {
  return first + (end - first + unit - 1) / unit * unit;
}

} // namespace

bool RunAllocator::open(std::uint32_t first, std::uint32_t limit) {
  const os::LockGuard guard(lock_);
  dirty_ = reinterpret_cast<std::uint64_t*>(os::map_readable(bitmap_bytes()));
  committed_ = reinterpret_cast<std::uint64_t*>(os::map_readable(bitmap_bytes()));
  if (dirty_ == nullptr || committed_ == nullptr || !recent_.open(bitmap_bytes())) return false;
  first_ = first == 0 ? 1 : first; // span 0 means "none" in links
  limit_ = limit;
  frontier_ = highest_ = writable_ = first_;
  return true;
}

void RunAllocator::close() {
  const os::LockGuard guard(lock_);
  for (std::uint64_t** bits : {&dirty_, &committed_}) {
    if (*bits != nullptr) os::unmap(reinterpret_cast<std::byte*>(*bits), bitmap_bytes());
    *bits = nullptr;
  }
  recent_.close(bitmap_bytes());
  backing_.emplace();
  first_ = frontier_ = highest_ = writable_ = limit_ = 0;
  dirty_free_.store(0, relaxed);
  for (std::uint64_t& word : nonempty_bins_)
    word = 0;
  for (std::uint32_t& head : heads_)
    head = 0;
}

std::uint32_t RunAllocator::length_of(std::uint32_t run) const {
  return span(run).extent.load(relaxed);
}
std::uint32_t RunAllocator::next_of(std::uint32_t run) const {
  return static_cast<std::uint32_t>(span(run).word.load(relaxed));
}
std::uint32_t RunAllocator::previous_of(std::uint32_t run) const {
  return static_cast<std::uint32_t>(span(run).word.load(relaxed) >> 32);
}
void RunAllocator::set_links(std::uint32_t run, std::uint32_t next, std::uint32_t previous) const {
  span(run).word.store(std::uint64_t{previous} << 32 | next, relaxed);
}

/// The first span from `at` on whose address is a multiple of `align_spans`.
std::uint64_t RunAllocator::align_up(std::uint32_t at, std::uint32_t align_spans) const {
  const std::uint64_t base = window_->base >> span_shift; // aligned to 1 GiB only
  const std::uint64_t mask = std::uint64_t{align_spans} - 1;
  return ((base + at + mask) & ~mask) - base;
}

unsigned RunAllocator::bin_of(std::uint32_t spans) {
  if (spans < linear_bins) return spans;
  const auto top = static_cast<unsigned>(std::bit_width(spans)) - 1;
  return linear_bins + (top - 4) * 8 + ((spans >> (top - 3)) & 7);
}

unsigned RunAllocator::bin_that_fits(std::uint32_t spans) {
  const unsigned bin = bin_of(spans);
  if (spans < linear_bins) return bin;
  const auto top = static_cast<unsigned>(std::bit_width(spans)) - 1;
  return (spans & ((1u << (top - 3)) - 1)) == 0 ? bin : bin + 1;
}

void RunAllocator::insert(std::uint32_t first, std::uint32_t spans) {
  const unsigned bin = bin_of(spans);
  const std::uint32_t head = heads_[bin];
  set_links(first, head, 0);
  if (head != 0) set_links(head, next_of(head), first);
  heads_[bin] = first;
  nonempty_bins_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  span(first).extent.store(spans, relaxed);
  if (spans > 1) {
    span(first + spans - 1).set_kind(SpanKind::free_tail);
    span(first + spans - 1).extent.store(first, relaxed);
  }
  span(first).set_kind(SpanKind::free_head);
}

void RunAllocator::remove(std::uint32_t first) {
  const std::uint32_t spans = length_of(first);
  const unsigned bin = bin_of(spans);
  const std::uint32_t next = next_of(first);
  const std::uint32_t previous = previous_of(first);
  if (next != 0) set_links(next, next_of(next), previous);
  if (previous != 0)
    set_links(previous, next, previous_of(previous));
  else if ((heads_[bin] = next) == 0)
    nonempty_bins_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  span(first).set_kind(SpanKind::none);
  span(first + spans - 1).set_kind(SpanKind::none);
}

void RunAllocator::coalesce_and_insert(std::uint32_t first, std::uint32_t spans) {
  if (first > first_) {
    const SpanKind before = span(first - 1).kind();
    std::uint32_t head = no_span;
    if (before == SpanKind::free_tail) head = span(first - 1).extent.load(relaxed);
    if (before == SpanKind::free_head) head = first - 1;
    if (head != no_span) {
      spans += length_of(head);
      remove(head);
      first = head;
    }
  }
  if (first + spans < frontier_ && span(first + spans).kind() == SpanKind::free_head) {
    const std::uint32_t after = first + spans;
    spans += length_of(after);
    remove(after);
  }
  if (first + spans == frontier_)
    frontier_ = first;
  else
    insert(first, spans);
}

std::uint32_t RunAllocator::find_run(std::uint32_t spans) const {
  // The bin of `spans` may also hold runs that fit: try the first four.
  constexpr int tries = 4;
  std::uint32_t run = heads_[bin_of(spans)];
  for (int i = 0; i < tries && run != 0; ++i, run = next_of(run))
    if (length_of(run) >= spans) return run;
  unsigned bin = bin_that_fits(spans);
  for (std::size_t word = bin / 64; word < sizeof nonempty_bins_ / sizeof nonempty_bins_[0];
       ++word) {
    const std::uint64_t bits = nonempty_bins_[word] & (~std::uint64_t{0} << (bin % 64));
    if (bits != 0) return heads_[word * 64 + static_cast<unsigned>(std::countr_zero(bits))];
    bin = 0;
  }
  return 0;
}

/// The first of all runs with `spans` at a multiple of `align_spans`; 0 if there is none.
std::uint32_t RunAllocator::find_run_exhaustively(std::uint32_t spans,
                                                  std::uint32_t align_spans) const {
  for (unsigned bin = bin_of(spans); bin < bin_count; ++bin)
    for (std::uint32_t run = heads_[bin]; run != 0; run = next_of(run))
      if (align_up(run, align_spans) + spans <= std::uint64_t{run} + length_of(run)) return run;
  return 0;
}

std::uint32_t RunAllocator::allocate_at_frontier(std::uint32_t spans, std::uint32_t align_spans) {
  const std::uint64_t begin = align_up(frontier_, align_spans);
  const std::uint64_t end = begin + spans;
  if (end > std::uint64_t{first_} + limit_) return no_span;
  if (make_writable(static_cast<std::uint32_t>(end)) != 0) return no_span;
  const auto at = static_cast<std::uint32_t>(begin);
  const std::uint32_t gap = frontier_;
  frontier_ = static_cast<std::uint32_t>(end);
  if (at > gap) insert(gap, at - gap);
  if (frontier_ > highest_) highest_ = frontier_;
  return at;
}

/// Inserts what is left of a detached run of `length` spans on both sides of an allocated part.
void RunAllocator::insert_remainders(std::uint32_t run, std::uint32_t length, std::uint32_t first,
                                     std::uint32_t spans) {
  const std::uint32_t end = first + spans;
  if (first > run) insert(run, first - run);
  if (run + length > end) insert(end, run + length - end);
}

std::uint32_t RunAllocator::allocate_address(std::uint32_t spans, std::uint32_t align_spans) {
  const std::uint64_t with_slack = std::uint64_t{spans} + align_spans - 1;
  std::uint32_t run = with_slack < limit_ ? find_run(static_cast<std::uint32_t>(with_slack)) : 0;
  if (run == 0) {
    const std::uint32_t at = allocate_at_frontier(spans, align_spans);
    if (at != no_span || (run = find_run_exhaustively(spans, align_spans)) == 0) return at;
  }
  const std::uint32_t length = length_of(run);
  remove(run);
  const auto at = static_cast<std::uint32_t>(align_up(run, align_spans));
  insert_remainders(run, length, at, spans);
  return at;
}

std::uint32_t RunAllocator::allocate(std::uint32_t spans, std::uint32_t align_spans, bool& dirty) {
  const os::LockGuard guard(lock_);
  const std::uint32_t at = allocate_address(spans, align_spans);
  if (at == no_span) {
    errno = ENOMEM;
    return no_span;
  }
  if (const int code = backing_->by_chunk ? commit(at, spans) : 0; code != 0) {
    coalesce_and_insert(at, spans);
    errno = code;
    return no_span;
  }
  const std::uint32_t written = count_dirty(at, spans);
  dirty_free_.fetch_sub(written, relaxed);
  dirty = written > 0 || !backing_->known_zero;
  set_bits(dirty_, at, spans);
  return at;
}

void RunAllocator::free(std::uint32_t first, std::uint32_t spans, std::uint8_t tick) {
  const os::LockGuard guard(lock_);
  recent_.advance(tick, first_, highest_ - first_);
  recent_.add(first, spans);
  dirty_free_.fetch_add(spans, relaxed);
  coalesce_and_insert(first, spans);
}

void RunAllocator::free_unused(std::uint32_t first, std::uint32_t spans) {
  const os::LockGuard guard(lock_);
  recent_.remove(first, spans);
  dirty_free_.fetch_add(spans, relaxed);
  coalesce_and_insert(first, spans);
}

bool RunAllocator::extend(std::uint32_t first, std::uint32_t spans, std::uint32_t more) {
  const os::LockGuard guard(lock_);
  const std::uint32_t next = first + spans;
  std::uint32_t length = 0;
  if (next == frontier_) {
    if (std::uint64_t{next} + more > std::uint64_t{first_} + limit_) return false;
    if (make_writable(next + more) != 0) return false;
    frontier_ += more;
    if (frontier_ > highest_) highest_ = frontier_;
  } else if (span(next).kind() == SpanKind::free_head && (length = length_of(next)) >= more) {
    remove(next);
    insert_remainders(next, length, next, more);
  } else {
    return false;
  }
  if (backing_->by_chunk && commit(next, more) != 0) {
    coalesce_and_insert(next, more);
    return false;
  }
  dirty_free_.fetch_sub(count_dirty(next, more), relaxed);
  set_bits(dirty_, next, more);
  return true;
}

int RunAllocator::make_writable_until(std::uint32_t end) {
  int code = os::make_writable(&span(writable_), &span(end));
  for (const std::uint64_t* bits : {dirty_, committed_})
    if (code == 0) code = os::make_writable(bits + writable_ / 64, bits + (end + 63) / 64);
  if (code == 0) code = recent_.make_writable(writable_, end);
  if (code == 0 && backing_->anonymous && backing_->mapped)
    code = os::make_writable(window_->span_address(writable_), window_->span_address(end));
  if (code == 0) writable_ = end;
  return code;
}

/// Makes spans up to `end` writable, and up to 64 MiB more if the system allows that. Always whole
/// chunks, as commit() uses them. Returns an errno, 0 for success.
int RunAllocator::make_writable(std::uint32_t end) {
  if (end <= writable_) return 0;
  for (const std::uint32_t unit : {16 * chunk_spans, chunk_spans}) {
    const std::uint32_t rounded = round_up_from(first_, end, unit);
    if (make_writable_until(std::min(rounded, first_ + limit_)) == 0) return 0;
  }
  return ENOMEM;
}

int RunAllocator::commit_range(std::uint32_t first, std::uint32_t spans) {
  std::byte* at = window_->span_address(first);
  const std::size_t bytes = std::size_t{spans} << span_shift;
  const std::uint64_t offset = std::uint64_t{first - first_} << span_shift;
  if (!backing_->anonymous) {
    const int fd = backing_->file.get();
    const int code = fd >= 0 ? os::reserve_part(fd, offset, bytes) : os::populate(at, bytes);
    if (code != 0) return code == EFAULT ? ENOSPC : code; // of populate(): the file is full
  } else if (backing_->mapped) {                          // bound to nodes
    if (os::free_bytes_of(backing_->options.nodes) < bytes) return ENOMEM;
    if (backing_->options.has_weights) set_node_policy(at, bytes, backing_->options, false);
  } else {
    if (const int code = os::map_anonymous_at(at, bytes, os::Place::fresh, true); code != 0)
      return code;
    set_node_policy(at, bytes, backing_->options, false);
  }
  if (backing_->options.spec.populate) os::populate(at, bytes);
  return 0;
}

int RunAllocator::commit(std::uint32_t first, std::uint32_t spans) {
  const std::uint32_t end = first + spans;
  for (std::uint32_t at = first; at < end;) {
    if (bit_is_set(committed_, at)) {
      ++at;
      continue;
    }
    std::uint32_t stop = at + 1;
    while (stop < end && !bit_is_set(committed_, stop))
      ++stop;
    std::uint32_t ahead = stop; // at the frontier, commit to the end of the chunk
    const std::uint32_t chunk_end = round_up_from(first_, stop, chunk_spans);
    while (stop == end && ahead < chunk_end && ahead < first_ + limit_ && ahead >= frontier_ &&
           !bit_is_set(committed_, ahead))
      ++ahead;
    int code = commit_range(at, ahead - at);
    if (code != 0 && ahead > stop) code = commit_range(at, (ahead = stop) - at);
    if (code != 0) return code;
    set_bits(committed_, at, ahead - at);
    at = ahead;
  }
  return 0;
}

std::uint32_t RunAllocator::count_dirty(std::uint32_t first, std::uint32_t spans) const {
  return count_bits(dirty_, first, spans);
}

std::uint32_t RunAllocator::clear_dirty(std::uint32_t first, std::uint32_t spans) {
  const std::uint32_t dirty = count_dirty(first, spans);
  clear_bits(dirty_, first, spans);
  dirty_free_.fetch_sub(dirty, relaxed);
  return dirty;
}

/// Returns pages of free spans to the system. Returns whether they are zero when used again.
bool RunAllocator::discard_to_zero(std::uint32_t first, std::uint32_t spans) const {
  std::byte* at = window_->span_address(first);
  const std::size_t bytes = std::size_t{spans} << span_shift;
  if (backing_->anonymous) return os::discard(at, bytes) == 0;
  if (backing_->options.reserve != Reserve::full && os::punch(at, bytes) == 0) return true;
  os::discard(at, bytes);
  return false;
}

/// Moves `at` to the first dirty part of free spans that has decayed, or any if `all`. Returns its
/// length, 0 if none.
std::uint32_t RunAllocator::find_purgeable(std::uint32_t& at, std::uint32_t end, bool all) const {
  while (at < end) {
    if (!all) at = recent_.find(at, end, false);
    const std::uint32_t stop = all ? end : recent_.find(at, end, true);
    if (at < stop && count_dirty(at, stop - at) > 0) return stop - at;
    at = stop;
  }
  return 0;
}

/// Detaches the runs of a bin that have decayed parts. Returns a chain through their links; 0 if
/// none.
std::uint32_t RunAllocator::detach_purgeable(unsigned bin, bool all) {
  const os::LockGuard guard(lock_);
  std::uint32_t chain = 0;
  for (std::uint32_t run = heads_[bin], next = 0; run != 0; run = next) {
    next = next_of(run);
    std::uint32_t at = run;
    if (find_purgeable(at, run + length_of(run), all) == 0) continue;
    remove(run);
    set_links(run, chain, 0);
    chain = run;
  }
  return chain;
}

/// Detaches the free spans from the frontier to highest_. Returns their number, 0 if none has
/// decayed.
std::uint32_t RunAllocator::detach_purgeable_tail(bool all, std::uint32_t& first) {
  const os::LockGuard guard(lock_);
  std::uint32_t at = first = frontier_;
  if (find_purgeable(at, highest_, all) == 0) return 0;
  frontier_ = highest_;
  return highest_ - first;
}

/// Returns the due parts of a detached run to the system, and inserts the run again.
std::size_t RunAllocator::purge_run(std::uint32_t run, std::uint32_t spans, bool all) {
  std::size_t bytes = 0;
  lock_.lock();
  for (std::uint32_t at = run, part = 0; (part = find_purgeable(at, run + spans, all)) > 0;
       at += part) {
    const std::uint32_t dirty = clear_dirty(at, part);
    if (backing_->by_chunk && !backing_->anonymous) clear_bits(committed_, at, part);
    lock_.unlock();
    const bool zero = discard_to_zero(at, part);
    if (zero) bytes += std::size_t{dirty} << span_shift;
    lock_.lock();
    if (!zero) backing_->known_zero = false; // pages locked by mlock keep their contents
  }
  coalesce_and_insert(run, spans);
  lock_.unlock();
  return bytes;
}

std::size_t RunAllocator::purge(std::uint8_t tick, bool all) {
  lock_.lock();
  recent_.advance(tick, first_, highest_ - first_);
  lock_.unlock();
  std::size_t bytes = 0;
  for (unsigned bin = 0; bin < bin_count && dirty_free_.load(relaxed) > 0; ++bin)
    for (std::uint32_t run = detach_purgeable(bin, all), next = 0; run != 0; run = next) {
      next = next_of(run);
      bytes += purge_run(run, length_of(run), all);
    }
  std::uint32_t first = 0;
  if (dirty_free_.load(relaxed) > 0)
    if (const std::uint32_t spans = detach_purgeable_tail(all, first); spans > 0)
      bytes += purge_run(first, spans, all);
  return bytes;
}

} // namespace nearfar::alloc
