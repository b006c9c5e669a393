#include "crash/runtime/page_rights.hpp"

#include <algorithm>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash/runtime/kernel.hpp"
#include "crash/runtime/lock.hpp"

namespace nearfar::crash::runtime {

namespace {

using os::page_bytes;

/// The program may store to pages of a region, or no longer. False if there is no memory to know it.
bool change_right(RecordedRegion& region, const char* begin, std::size_t bytes, bool gives) {
  if (bytes == region.bytes && region.denied == nullptr) {
    region.writable = gives;
    return true;
  }
  const std::size_t pages = page_count(region.bytes);
  if (region.denied == nullptr) {
    void* const made = reinterpret_cast<void*>(system_call(
        SYS_mmap, nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (made == MAP_FAILED) return false;
    auto* const denied = static_cast<bool*>(made);
    std::fill_n(denied, pages, !region.writable);
    region.denied = denied;
    region.writable = true;
  }
  std::fill_n(region.denied + static_cast<std::size_t>(begin - region.start) / page_bytes,
              page_count(bytes), !gives);
  return true;
}

/// keep_watch() of a part of one region. False if there is no memory for its rights.
bool keep_watch_of(RecordedRegion& region, char* first, char* last, int protection) {
  char* const begin = std::max(first, region.start);
  char* const end = std::min(last, region.start + region.bytes);
  if (begin >= end) return true;
  const auto bytes = static_cast<std::size_t>(end - begin);
  const bool gives = (protection & PROT_WRITE) != 0;
  if (gives && seen == Seen::faults && !has_failed())
    system_call(SYS_mprotect, begin, bytes, protection & ~PROT_WRITE);
  return change_right(region, begin, bytes, gives);
}

} // namespace

void protect_writable(const RecordedRegion& region, int protection) {
  for (std::size_t at = 0; at < region.bytes;) {
    const std::size_t part = same_right(region, region.start + at, region.bytes - at);
    if (region.is_writable(at)) system_call(SYS_mprotect, region.start + at, part, protection);
    at += part;
  }
}

void keep_watch(void* start, std::size_t bytes, int protection) {
  char* const end = static_cast<char*>(start) + page_count(bytes) * page_bytes;
  bool known = true;
  {
    const Lock locked;
    for (int i = 0; i < regions.count; ++i)
      known &= keep_watch_of(regions.region[i], static_cast<char*>(start), end, protection);
  }
  if (!known) end_recording("no memory for the rights of pages");
}

std::size_t pages_of_same_right(const RecordedRegion& region, std::size_t into, std::size_t bytes) {
  const std::size_t end = std::min(into + bytes, region.bytes);
  std::size_t next = into;
  while (next < end && region.is_writable(next) == region.is_writable(into))
    next = (next / page_bytes + 1) * page_bytes;
  return std::min(next, end) - into;
}

char* writable(void* at, std::size_t bytes) {
  const RecordedRegion* region = region_of(at);
  if (region == nullptr) return nullptr;
  const auto into = static_cast<std::size_t>(static_cast<const char*>(at) - region->start);
  if (!region->is_writable(into)) return nullptr;
  return bytes <= same_right(*region, static_cast<const char*>(at), bytes) ? region->alias + into
                                                                           : nullptr;
}

} // namespace nearfar::crash::runtime
