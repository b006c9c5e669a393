#include "crash/runtime/events.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/single_threaded.h>

#include "crash/runtime/callers.hpp"
#include "crash/runtime/coverage.hpp"
#include "crash/runtime/judging.hpp"
#include "crash/runtime/lock.hpp"
#include "crash/runtime/locks.hpp"
#include "crash/runtime/turns.hpp"

namespace nearfar::crash::runtime {

Recording recording;
std::atomic<bool> two_hosts{false};

namespace {

using os::page_bytes;

std::atomic<std::uint16_t> threads{0};
/// A thread that takes turns for two hosts has a number on each.
thread_local std::uint16_t thread[storelog::hosts] = {storelog::no_thread, storelog::no_thread};
thread_local std::uint8_t host = 0;
/// The thread has flushed lines, or made non-temporal stores, and no fence has followed.
thread_local bool waits_for_fence = false;

/// Bytes of whole words, in which unseen stores are counted (coverage.hpp).
std::uint64_t in_words(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

/// Calls visit(region, offset in it, bytes) for what lies in the pool of a range that begins there.
template <class Visit>
void each_part(const void* at, std::size_t bytes, Visit visit) {
  const auto* from = static_cast<const char*>(at);
  while (bytes > 0) {
    const RecordedRegion* region = region_of(from);
    if (region == nullptr) return;
    const auto into = static_cast<std::uint64_t>(from - region->start);
    const std::size_t part = std::min<std::size_t>(bytes, region->bytes - into);
    visit(*region, into, part);
    from += part;
    bytes -= part;
  }
}

/// compare() with what was stored by now. Other threads with callbacks may store at this moment.
std::size_t compare_stored(const RecordedRegion& region, std::uint64_t into, std::size_t bytes,
                           const Stored& changes) {
  const auto compare_part = [&](const char* now, std::uint64_t at, std::size_t part) {
    return compare(now, region.offset + at, part, EventKind::store, author(), changes);
  };
  if (seen == Seen::faults || __libc_single_threaded != 0)
    return compare_part(region.alias + into, into, bytes);
  std::size_t changed = 0;
  char copy[1024];
  for (const std::uint64_t end = into + bytes; into < end; into += sizeof copy) {
    const std::size_t part = std::min<std::size_t>(sizeof copy, end - into);
    if (std::memcmp(region.alias + into, recording.shadow + region.offset + into, part) == 0)
      continue;
    std::memcpy(copy, region.alias + into, part);
    settle_in_copy(region, into, {copy, part});
    changed += compare_part(copy, into, part);
  }
  return changed;
}

/// The same where stores are only judged, for a flush by the program or by libpmemobj, which stores
/// without callbacks. With several threads, not of the program: another may store at this moment.
void take_unseen(const RecordedRegion& region, std::uint64_t into, std::size_t bytes,
                 const void* code) {
  const std::uint64_t offset = region.offset + into;
  const auto keep = [&](std::uint64_t from, std::uint64_t size) {
    keep_seen(from, size, region.alias + (from - region.offset));
  };
  if (is_in_library(code)) return keep(offset, bytes);
  // Elsewhere it is found at the end.
  if (!has_own_parts() || __libc_single_threaded == 0 || recording.has_children) return;
  for_each_lock(offset, bytes, keep);
  recording.unseen += count_unseen(offset, bytes, contents(region, into));
}

/// Before lines are flushed: records what was stored to them and has not been seen. With faults,
/// that is what another thread stored while the page was open; with callbacks, what code without
/// them stored.
void find_unseen(const RecordedRegion& region, std::uint64_t into, std::size_t bytes,
                 const void* code) {
  const bool faults = seen == Seen::faults;
  if (faults && __libc_single_threaded != 0) return;
  const std::uint64_t offset = region.offset + into;
  if (offset >= recording.pool_bytes) return;
  const std::size_t lines =
      std::min<std::uint64_t>((bytes + 63) / 64 * 64, recording.pool_bytes - offset);
  if (recording.shadow == nullptr) return take_unseen(region, into, lines, code);
  if (!faults)
    for_each_lock(offset, lines, [&](std::uint64_t lock, std::uint64_t size) {
      std::memcpy(recording.shadow + lock, region.alias + (lock - region.offset), size);
    });
  const bool of_library = !faults && is_in_library(code);
  const Stored changes =
      of_library ? Stored{.site = site_of(*recording.writer, code)} : Stored{0, 0};
  const std::size_t changed = compare_stored(region, into, lines, changes);
  if (faults || of_library || recording.has_children) return;
  recording.unseen += in_words(changed);
}

/// Flushes of the whole pool; an event has less than 4 GiB.
void put_flush_of_all(SiteNumber site) {
  constexpr std::uint64_t most = std::uint64_t{1} << 30;
  for (std::uint64_t at = 0; at < recording.pool_bytes; at += most)
    put(EventKind::flush, author(), at, std::min(most, recording.pool_bytes - at), nullptr, site);
}

/// Calls visit(at, bytes) for each mapping of a part of the file, if the descriptor is one of the pool.
template <class Visit>
void for_file_range(int fd, std::uint64_t offset, std::size_t bytes, const Visit& visit) {
  if (!is_pool(fd)) return;
  for (int i = 0; i < regions.count; ++i) {
    const RecordedRegion& region = regions.region[i];
    const std::uint64_t from = std::max(offset, region.offset);
    const std::uint64_t end = std::min(offset + bytes, region.offset + region.bytes);
    if (from < end) visit(region.start + (from - region.offset), end - from);
  }
}

} // namespace

Author author() {
  if (thread[host] == storelog::no_thread) thread[host] = threads.fetch_add(1);
  return {thread[host], host};
}

std::uint16_t reserve_thread_number() {
  author(); // the caller has a number before the thread that it creates
  return threads.fetch_add(1);
}

void use_thread_number(std::uint16_t number) { thread[host] = number; }

void continue_on_host(int number) {
  settle_stores();
  if (number < 0 || number >= storelog::hosts) {
    std::fprintf(stderr, "nearfar: nearfar_crash_host(%d): there are hosts 0 and 1\n", number);
    std::abort();
  }
  host = static_cast<std::uint8_t>(number);
  if (host != 0) two_hosts = true;
}

void put(EventKind kind, Author who, std::uint64_t address, std::size_t bytes, const void* data,
         std::optional<SiteNumber> known, bool changes) {
  const bool needs_fence = kind == EventKind::flush || kind == EventKind::nt_store;
  if (who != outside && (needs_fence || kind == EventKind::fence)) waits_for_fence = needs_fence;
  const SiteNumber site = known ? *known : site_of(*recording.writer, nullptr);
  const auto size = static_cast<std::uint32_t>(bytes);
  if (judge() != nullptr)
    judge()->take({kind, site.of_library, !known && !needs_fence ? Judge::any_thread : who.thread,
                   site.number, size, address, changes});
  else
    recording.writer->event(kind, who.thread, site.number, address, size, data, who.host);
}

void put_store(EventKind kind, Author who, const void* at, std::size_t bytes, SiteNumber site) {
  char* const shadow = recording.shadow;
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    const char* const now = contents(region, into);
    // What was there already changes no image: a thread that waits for a lock would fill the log.
    if (judge() == nullptr && !two_hosts &&
        std::memcmp(shadow + region.offset + into, now, part) == 0)
      return;
    if (shadow != nullptr)
      std::memcpy(shadow + region.offset + into, now, part);
    else
      keep_seen(region.offset + into, part, now);
    if (!site.of_library) mark_as_of_program(region.offset + into, part);
    put(kind, who, region.offset + into, part, now, site);
  });
}

void keep_store(const void* at, std::size_t bytes) {
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    keep_seen(region.offset + into, part, contents(region, into));
  });
}

bool Stored::is_of_another(std::uint64_t at) const { return at < begin || at >= end; }

std::uint64_t Stored::end_of_part(std::uint64_t at) const {
  return at >= end ? ~std::uint64_t{0} : at < begin ? begin : end;
}

bool Stored::is_judged_whole(std::uint64_t from, std::uint64_t to) const {
  return all && judge() != nullptr && site && from >= begin && to <= end;
}

std::size_t compare(const char* now, std::uint64_t offset, std::size_t bytes, EventKind kind,
                    Author who, const Stored& stored) {
  const bool faults = seen == Seen::faults; // else the caller counts
  std::size_t changed = 0;
  for (std::size_t at = 0; at < bytes;) {
    char* old = recording.shadow + offset;
    if (now[at] == old[at]) {
      ++at;
      continue;
    }
    const std::size_t most = std::min(bytes, stored.end_of_part(offset + at) - offset);
    const bool of_another = stored.is_of_another(offset + at);
    std::size_t end = at + 1; // up to 7 equal bytes within one store are part of it
    for (std::size_t same = 0, i = end; i < most && same < 8; ++i) {
      if (of_another && same > 0 && (offset + i) % 8 == 0) break; // where stores end is not known
      same = now[i] == old[i] ? same + 1 : 0;
      if (same == 0) end = i + 1;
    }
    std::memcpy(old + at, now + at, end - at);
    if (of_another && __libc_single_threaded != 0) { // another process, or a call that is not seen
      put(EventKind::nt_store, outside, offset + at, end - at, now + at, {});
      put(EventKind::fence, outside, 0, 0, nullptr, {});
      if (faults) recording.unseen += in_words(end - at);
    } else if (of_another) // neither its code nor its kind is known
      put(EventKind::store, who, offset + at, end - at, now + at, {});
    else if (!stored.is_judged_whole(offset + at, offset + end))
      put(kind, who, offset + at, end - at, now + at, stored.site);
    changed += end - at;
    at = end;
  }
  return changed;
}

void report(EventKind kind, const void* at, std::size_t bytes, const void* code) {
  settle_stores();
  if (recording.pool_bytes == 0) return;
  if (kind == EventKind::flush && bytes > 0 && region_of(at) != nullptr) {
    turn_at_flush();
    settle_stores_of_others(Range{at, bytes});
  }
  const Lock locked;
  if (recording.writer == nullptr) return;
  const SiteNumber site = site_of(*recording.writer, code);
  if (!storelog::has_range(kind)) {
    put(kind, author(), bytes, 0, nullptr, site);
    // A program that is killed loses little. Where stores are cheap to record, this is not.
    if (kind == EventKind::fence && seen == Seen::faults) recording.writer->flush();
    return;
  }
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    const std::uint64_t from = region.offset + into;
    const std::uint64_t first = kind == EventKind::log ? from : from / 64 * 64;
    const std::size_t size = from + part - first;
    if (!site.of_library) mark_as_of_program(first, size);
    if (kind == EventKind::flush) find_unseen(region, first - region.offset, size, code);
    put(kind, author(), first, size, nullptr, site);
  });
}

void report_clflush(const void* at, const void* code) {
  const bool others_wait = waits_for_fence;
  report(EventKind::flush, at, 1, code);
  if (!others_wait) report(EventKind::fence, nullptr, 0, code);
}

void report_synced(int fd, const void* code) {
  if (is_pool(fd)) report_all_synced(code);
}

void report_synced_file_system(int fd, const void* code) {
  if (holds_pool(fd)) report_all_synced(code);
}

void report_all_synced(const void* code) {
  settle_stores();
  settle_stores_of_others();
  {
    const Lock locked;
    if (recording.writer == nullptr) return;
    for (int i = 0; i < regions.count; ++i)
      find_unseen(regions.region[i], 0, regions.region[i].bytes, code);
    put_flush_of_all(site_of(*recording.writer, code));
  }
  report(EventKind::fence, nullptr, 0, code);
}

void report_store(EventKind kind, const void* at, std::size_t bytes, const void* code) {
  if (region_of(at) == nullptr) return;
  settle_stores();
  settle_transaction(code);
  const Lock locked;
  if (!is_unrecorded()) put_store(kind, author(), at, bytes, site_of(*recording.writer, code));
}

SiteNumber site_of_store(const void* code) {
  return recording.writer == nullptr ? SiteNumber{} : site_of(*recording.writer, code);
}

bool differs_from_log(const void* at, std::size_t bytes) {
  bool differs = recording.shadow == nullptr;
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    differs |= recording.shadow != nullptr &&
               std::memcmp(recording.shadow + region.offset + into, region.alias + into, part) != 0;
  });
  return differs;
}

void report_written(int fd, std::uint64_t offset, std::size_t bytes, const void* code) {
  for_file_range(fd, offset, bytes, [&](const void* at, std::size_t part) {
    report_store(EventKind::store, at, part, code);
  });
}

void report_zeroed(int fd, std::uint64_t offset, std::size_t bytes, const void* code) {
  if (seen == Seen::callbacks) return; // what was zero before is not known: it is found unseen
  settle_stores();
  for_file_range(fd, offset, bytes,
                 [&](const void* at, std::size_t part) { report_changed(at, part, code); });
}

void report_object(const void* at, std::size_t bytes, bool is_new) {
  settle_stores();
  const Lock locked;
  if (recording.writer == nullptr) return;
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    mark_as_of_program(region.offset + into, part);
    if (is_new) keep_seen(region.offset + into, part, region.alias + into);
  });
}

void report_use(Use use, const void* at, std::size_t bytes, const void* code) {
  if (use == Use::allocated) report_object(at, bytes, true);
  settle_stores();
  const Lock locked;
  if (recording.writer == nullptr || judge() == nullptr) return;
  const SiteNumber site = site_of(*recording.writer, code);
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    judge()->take(use, {EventKind::store, false, author().thread, site.number,
                        static_cast<std::uint32_t>(part), region.offset + into});
  });
}

void report_published(const void* link, const void* at, std::size_t bytes, const void* code) {
  const RecordedRegion* const region = region_of(link);
  if (region == nullptr) return; // what refers to it is lost in a crash
  {
    const Lock locked;
    if (judge() == nullptr) return;
    const auto into = static_cast<std::uint64_t>(static_cast<const char*>(link) - region->start);
    if (judge()->is_new(region->offset + into)) return;
  }
  report_use(Use::published, at, bytes, code);
}

void report_load(const void* at, std::size_t bytes, const void* code) {
  if (region_of(at) == nullptr) return;
  settle_stores();
  settle_stores_of_others(Range{at, bytes}); // what is loaded was stored before
  const Lock locked;
  if (recording.writer == nullptr) return;
  const SiteNumber site = site_of(*recording.writer, code);
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    put(EventKind::load, author(), region.offset + into, part, nullptr, site);
  });
}

void report_changed(const void* at, std::size_t bytes, const void* code) {
  settle_transaction(code);
  const Lock locked;
  if (is_unrecorded()) return;
  each_part(at, bytes, [&](const RecordedRegion& region, std::uint64_t into, std::size_t part) {
    const std::uint64_t begin = region.offset + into;
    const Stored own{begin, begin + part, site_of(*recording.writer, code), false};
    compare(region.alias + into, begin, part, EventKind::store, author(), own);
  });
}

void report_changes(EventKind kind, const NamedBytes& stored, const void* code) {
  settle_transaction(code);
  const Lock locked;
  const RecordedRegion* region = region_of(stored.bytes.data());
  if (region == nullptr || is_unrecorded()) return;
  const auto at = static_cast<std::uint64_t>(reinterpret_cast<const char*>(stored.bytes.data()) -
                                             region->start);
  const std::uint64_t page = at / page_bytes * page_bytes;
  const std::size_t bytes = std::min<std::size_t>(page_bytes, region->bytes - page);
  const std::size_t size = std::min(stored.bytes.size(), page + bytes - at);
  const std::uint64_t begin = region->offset + at;
  const Stored own{begin, begin + size, site_of(*recording.writer, code), stored.all};
  const bool changes = std::memcmp(recording.shadow + begin, region->alias + at, size) != 0;
  compare(region->alias + page, region->offset + page, bytes, kind, author(), own);
  if (judge() == nullptr || !stored.all) return;
  put(kind, author(), begin, size, nullptr, own.site, changes);
}

} // namespace nearfar::crash::runtime
