#include "alloc/runs.hpp"

#include <bit>
#include <cerrno>
#include <initializer_list>

#include "alloc/bits.hpp"
#include "os/address_space.hpp"
#include "os/file.hpp"

namespace nearfar::alloc {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr unsigned linear_bins = 16;

Span& span(std::uint32_t index) { return geometry.spans[index]; }
SpanKind kind_of(std::uint32_t index) {
  return static_cast<SpanKind>(span(index).kind.load(relaxed));
}
void set_kind(std::uint32_t index, SpanKind kind) {
  span(index).kind.store(static_cast<std::uint8_t>(kind), relaxed);
}

std::uint32_t next_of(std::uint32_t index) {
  return static_cast<std::uint32_t>(span(index).word.load(relaxed));
}
std::uint32_t previous_of(std::uint32_t index) {
  return static_cast<std::uint32_t>(span(index).word.load(relaxed) >> 32);
}
void set_links(std::uint32_t index, std::uint32_t next, std::uint32_t previous) {
  span(index).word.store(std::uint64_t{previous} << 32 | next, relaxed);
}

/// A bit for each span of the window.
std::size_t bitmap_bytes() { return (spans_per_tier() * tier_count / 64 + 1) * 8; }

/// The first span from `at` on whose address is a multiple of `align_spans`.
std::uint64_t aligned_from(std::uint32_t at, std::uint32_t align_spans) {
  const std::uint64_t base = geometry.base >> span_shift; // aligned to 1 GiB only
  const std::uint64_t mask = std::uint64_t{align_spans} - 1;
  return ((base + at + mask) & ~mask) - base;
}

} // namespace

bool Runs::open(std::uint32_t first, std::uint32_t limit, const Medium& medium) {
  close();
  dirty_ = reinterpret_cast<std::uint64_t*>(os::map_anonymous(bitmap_bytes()));
  committed_ = reinterpret_cast<std::uint64_t*>(os::map_anonymous(bitmap_bytes()));
  if (dirty_ == nullptr || committed_ == nullptr || !recent_.open(bitmap_bytes())) {
    close();
    return false;
  }
  medium_ = medium;
  first_ = first == 0 ? 1 : first; // span 0 stands for "none"
  limit_ = limit;
  frontier_ = highest_ = first_;
  return true;
}

void Runs::close() {
  for (std::uint64_t** bits : {&dirty_, &committed_}) {
    if (*bits != nullptr) os::unmap(reinterpret_cast<std::byte*>(*bits), bitmap_bytes());
    *bits = nullptr;
  }
  recent_.close(bitmap_bytes());
  medium_ = Medium{};
  first_ = frontier_ = highest_ = limit_ = 0;
  dirty_free_.store(0, relaxed);
  for (std::uint64_t& word : nonempty_)
    word = 0;
  for (std::uint32_t& head : heads_)
    head = 0;
}

unsigned Runs::bin_of(std::uint32_t spans) {
  if (spans < linear_bins) return spans;
  const auto top = static_cast<unsigned>(std::bit_width(spans)) - 1;
  return linear_bins + (top - 4) * 8 + ((spans >> (top - 3)) & 7);
}

unsigned Runs::bin_that_fits(std::uint32_t spans) {
  const unsigned bin = bin_of(spans);
  if (spans < linear_bins) return bin;
  const auto top = static_cast<unsigned>(std::bit_width(spans)) - 1;
  return (spans & ((1u << (top - 3)) - 1)) == 0 ? bin : bin + 1;
}

void Runs::insert(std::uint32_t first, std::uint32_t spans) {
  const unsigned bin = bin_of(spans);
  const std::uint32_t head = heads_[bin];
  set_links(first, head, 0);
  if (head != 0) set_links(head, next_of(head), first);
  heads_[bin] = first;
  nonempty_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  span(first).extent.store(spans, relaxed);
  if (spans > 1) {
    set_kind(first + spans - 1, SpanKind::free_tail);
    span(first + spans - 1).extent.store(first, relaxed);
  }
  set_kind(first, SpanKind::free_head);
}

void Runs::remove(std::uint32_t first) {
  const std::uint32_t spans = span(first).extent.load(relaxed);
  const unsigned bin = bin_of(spans);
  const std::uint32_t next = next_of(first);
  const std::uint32_t previous = previous_of(first);
  if (next != 0) set_links(next, next_of(next), previous);
  if (previous != 0)
    set_links(previous, next, previous_of(previous));
  else if ((heads_[bin] = next) == 0)
    nonempty_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  set_kind(first, SpanKind::none);
  set_kind(first + spans - 1, SpanKind::none);
}

void Runs::join_and_insert(std::uint32_t first, std::uint32_t spans) {
  if (first > first_) {
    const SpanKind before = kind_of(first - 1);
    std::uint32_t head = no_span;
    if (before == SpanKind::free_tail) head = span(first - 1).extent.load(relaxed);
    if (before == SpanKind::free_head) head = first - 1;
    if (head != no_span) {
      spans += span(head).extent.load(relaxed);
      remove(head);
      first = head;
    }
  }
  if (first + spans < frontier_ && kind_of(first + spans) == SpanKind::free_head) {
    const std::uint32_t after = first + spans;
    spans += span(after).extent.load(relaxed);
    remove(after);
  }
  if (first + spans == frontier_)
    frontier_ = first;
  else
    insert(first, spans);
}

std::uint32_t Runs::find(std::uint32_t spans) {
  // A run of the bin below may be long enough too: its first few are looked at.
  constexpr int looks = 4;
  std::uint32_t run = heads_[bin_of(spans)];
  for (int i = 0; i < looks && run != 0; ++i, run = next_of(run))
    if (span(run).extent.load(relaxed) >= spans) return run;
  unsigned bin = bin_that_fits(spans);
  for (std::size_t word = bin / 64; word < sizeof nonempty_ / sizeof nonempty_[0]; ++word) {
    const std::uint64_t bits = nonempty_[word] & (~std::uint64_t{0} << (bin % 64));
    if (bits != 0) return heads_[word * 64 + static_cast<unsigned>(std::countr_zero(bits))];
    bin = 0;
  }
  return 0;
}

/// The first run with `spans` at a multiple of `align_spans`, all being looked at; 0 for none.
std::uint32_t Runs::find_exact(std::uint32_t spans, std::uint32_t align_spans) const {
  for (unsigned bin = bin_of(spans); bin < bin_count; ++bin)
    for (std::uint32_t run = heads_[bin]; run != 0; run = next_of(run))
      if (aligned_from(run, align_spans) + spans <=
          std::uint64_t{run} + span(run).extent.load(relaxed))
        return run;
  return 0;
}

std::uint32_t Runs::take_from_frontier(std::uint32_t spans, std::uint32_t align_spans) {
  const std::uint64_t begin = aligned_from(frontier_, align_spans);
  const std::uint64_t end = begin + spans;
  if (end > std::uint64_t{first_} + limit_) return no_span;
  const auto at = static_cast<std::uint32_t>(begin);
  const std::uint32_t gap = frontier_;
  frontier_ = static_cast<std::uint32_t>(end);
  if (at > gap) insert(gap, at - gap);
  if (frontier_ > highest_) highest_ = frontier_;
  return at;
}

void Runs::trim(std::uint32_t got, std::uint32_t length, std::uint32_t wanted,
                std::uint32_t spans) {
  const std::uint32_t end = wanted + spans;
  if (wanted > got) insert(got, wanted - got);
  if (got + length > end) insert(end, got + length - end);
}

std::uint32_t Runs::take_place(std::uint32_t spans, std::uint32_t align_spans) {
  const std::uint64_t with_slack = std::uint64_t{spans} + align_spans - 1;
  std::uint32_t run = with_slack < limit_ ? find(static_cast<std::uint32_t>(with_slack)) : 0;
  if (run == 0) {
    const std::uint32_t at = take_from_frontier(spans, align_spans);
    if (at != no_span || (run = find_exact(spans, align_spans)) == 0) return at;
  }
  const std::uint32_t length = span(run).extent.load(relaxed);
  remove(run);
  const auto at = static_cast<std::uint32_t>(aligned_from(run, align_spans));
  trim(run, length, at, spans);
  return at;
}

std::uint32_t Runs::take(std::uint32_t spans, std::uint32_t align_spans, bool& dirty) {
  const os::LockGuard guard(lock_);
  const std::uint32_t at = take_place(spans, align_spans);
  if (at == no_span) {
    errno = ENOMEM;
    return no_span;
  }
  if (const int code = medium_.by_chunk ? commit(at, spans) : 0; code != 0) {
    join_and_insert(at, spans);
    errno = code;
    return no_span;
  }
  const std::uint32_t written = count_dirty(at, spans);
  dirty_free_.fetch_sub(written, relaxed);
  dirty = written > 0 || !medium_.known_zero;
  mark_dirty(at, spans);
  return at;
}

void Runs::give_back(std::uint32_t first, std::uint32_t spans, std::uint8_t tick) {
  const os::LockGuard guard(lock_);
  recent_.advance(tick, first_, highest_ - first_);
  recent_.add(first, spans);
  dirty_free_.fetch_add(spans, relaxed);
  join_and_insert(first, spans);
}

void Runs::give_back_unused(std::uint32_t first, std::uint32_t spans) {
  const os::LockGuard guard(lock_);
  recent_.remove(first, spans);
  dirty_free_.fetch_add(spans, relaxed);
  join_and_insert(first, spans);
}

bool Runs::extend(std::uint32_t first, std::uint32_t spans, std::uint32_t more) {
  const os::LockGuard guard(lock_);
  const std::uint32_t next = first + spans;
  std::uint32_t length = 0;
  if (next == frontier_) {
    if (std::uint64_t{next} + more > std::uint64_t{first_} + limit_) return false;
    frontier_ += more;
    if (frontier_ > highest_) highest_ = frontier_;
  } else if (kind_of(next) == SpanKind::free_head &&
             (length = span(next).extent.load(relaxed)) >= more) {
    remove(next);
    trim(next, length, next, more);
  } else {
    return false;
  }
  if (medium_.by_chunk && commit(next, more) != 0) {
    join_and_insert(next, more);
    return false;
  }
  dirty_free_.fetch_sub(count_dirty(next, more), relaxed);
  mark_dirty(next, more);
  return true;
}

int Runs::commit_range(std::uint32_t first, std::uint32_t spans) {
  std::byte* at = span_address(first);
  const std::size_t bytes = std::size_t{spans} << span_shift;
  const std::uint64_t offset = std::uint64_t{first - first_} << span_shift;
  if (!medium_.anonymous) {
    const int fd = medium_.file.get();
    const int code = fd >= 0 ? os::reserve_part(fd, offset, bytes) : os::populate(at, bytes);
    if (code != 0) return code == EFAULT ? ENOSPC : code; // populate() meets a full file so
  } else if (medium_.mapped) {                            // on a node: is there so much?
    if (os::free_bytes_of(medium_.options.nodes) < bytes) return ENOMEM;
  } else {
    if (const int code = os::map_anonymous_at(at, bytes, os::Place::fresh, true); code != 0)
      return code;
    if (medium_.options.policy != os::Policy::local)
      os::set_policy(at, bytes, medium_.options.policy, medium_.options.nodes, false);
  }
  if (medium_.options.spec.populate) os::populate(at, bytes);
  return 0;
}

int Runs::commit(std::uint32_t first, std::uint32_t spans) {
  constexpr std::uint32_t chunk_spans = (std::uint32_t{4} << 20) >> span_shift;
  const std::uint32_t end = first + spans;
  for (std::uint32_t at = first; at < end;) {
    if (bit_is_set(committed_, at)) {
      ++at;
      continue;
    }
    std::uint32_t stop = at + 1;
    while (stop < end && !bit_is_set(committed_, stop))
      ++stop;
    std::uint32_t ahead = stop; // behind the frontier a whole chunk is made sure of
    const std::uint32_t chunk_end =
        first_ + (stop - first_ + chunk_spans - 1) / chunk_spans * chunk_spans;
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

void Runs::mark_dirty(std::uint32_t first, std::uint32_t spans) { set_bits(dirty_, first, spans); }

std::uint32_t Runs::count_dirty(std::uint32_t first, std::uint32_t spans) const {
  return count_bits(dirty_, first, spans);
}

std::uint32_t Runs::clear_dirty(std::uint32_t first, std::uint32_t spans) {
  const std::uint32_t dirty = count_dirty(first, spans);
  clear_bits(dirty_, first, spans);
  dirty_free_.fetch_sub(dirty, relaxed);
  return dirty;
}

bool Runs::discard(std::uint32_t first, std::uint32_t spans) {
  std::byte* at = span_address(first);
  const std::size_t bytes = std::size_t{spans} << span_shift;
  if (medium_.anonymous) return os::discard(at, bytes) == 0;
  if (medium_.options.reserve != Reserve::full && os::punch(at, bytes) == 0) return true;
  os::discard(at, bytes);
  return false;
}

/// Moves `at` to the first written part of free spans that is to be purged; its spans, 0 for none.
std::uint32_t Runs::find_old(std::uint32_t& at, std::uint32_t end, bool all) const {
  while (at < end) {
    if (!all) at = recent_.find(at, end, false);
    const std::uint32_t stop = all ? end : recent_.find(at, end, true);
    if (at < stop && count_dirty(at, stop - at) > 0) return stop - at;
    at = stop;
  }
  return 0;
}

/// Takes the runs of a bin that are to be purged out of it, chained by their links; 0 for none.
std::uint32_t Runs::take_old(unsigned bin, bool all) {
  const os::LockGuard guard(lock_);
  std::uint32_t chain = 0;
  for (std::uint32_t run = heads_[bin], next = 0; run != 0; run = next) {
    next = next_of(run);
    std::uint32_t at = run;
    if (find_old(at, run + span(run).extent.load(relaxed), all) == 0) continue;
    remove(run);
    set_links(run, chain, 0);
    chain = run;
  }
  return chain;
}

/// Takes what lies between the frontier and where it once was. Returns its spans, 0 if it is not to
/// be purged.
std::uint32_t Runs::take_old_tail(bool all, std::uint32_t& first) {
  const os::LockGuard guard(lock_);
  std::uint32_t at = first = frontier_;
  if (find_old(at, highest_, all) == 0) return 0;
  frontier_ = highest_;
  return highest_ - first;
}

/// Returns the old parts of a run that is in no bin to the system, and puts the run back.
std::size_t Runs::purge_run(std::uint32_t run, std::uint32_t spans, bool all) {
  std::size_t bytes = 0;
  lock_.lock();
  for (std::uint32_t at = run, part = 0; (part = find_old(at, run + spans, all)) > 0; at += part) {
    const std::uint32_t dirty = clear_dirty(at, part);
    if (medium_.by_chunk && !medium_.anonymous) clear_bits(committed_, at, part);
    lock_.unlock();
    const bool zero = discard(at, part);
    if (zero) bytes += std::size_t{dirty} << span_shift;
    lock_.lock();
    if (!zero) medium_.known_zero = false; // locked pages (mlock) stay as they were
  }
  join_and_insert(run, spans);
  lock_.unlock();
  return bytes;
}

std::size_t Runs::purge(std::uint8_t tick, bool all) {
  lock_.lock();
  recent_.advance(tick, first_, highest_ - first_);
  lock_.unlock();
  std::size_t bytes = 0;
  for (unsigned bin = 0; bin < bin_count && dirty_free_.load(relaxed) > 0; ++bin)
    for (std::uint32_t run = take_old(bin, all), next = 0; run != 0; run = next) {
      next = next_of(run);
      bytes += purge_run(run, span(run).extent.load(relaxed), all);
    }
  std::uint32_t first = 0;
  if (dirty_free_.load(relaxed) > 0)
    if (const std::uint32_t spans = take_old_tail(all, first); spans > 0)
      bytes += purge_run(first, spans, all);
  return bytes;
}

} // namespace nearfar::alloc
