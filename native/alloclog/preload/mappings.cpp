// Enters mappings that the program makes with mmap() and mremap() in the allocation log. The kernel
// is called directly, because dlsym() does not work yet when the first mappings are made; another
// preloaded library that replaces these functions is not called.
//
// Not seen       mappings by libc itself (stacks of threads, memory of malloc), by programs that
//                call the kernel themselves (Go), and those before the process has a log.
// Cost           a system call costs more than its event.
// Thread safety  any thread, also signal handlers.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "alloclog/preload/sites.hpp"
#include "alloclog/preload/state.hpp"

namespace {

using namespace nearfar::alloclog;
using nearfar::CallSite;

constexpr std::size_t page_bytes = 1 << page_bits;

constexpr std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + page_bytes - 1) & ~std::uint64_t{page_bytes - 1};
}

std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

void enter_event(std::uint64_t address, std::uint64_t bytes, std::uint64_t source) {
  const std::uint64_t number =
      std::atomic_ref(header().mapping_count).fetch_add(1, std::memory_order_relaxed) + 1;
  auto* events = reinterpret_cast<MappingEvent*>(state.slot + mappings_offset);
  MappingEvent& event = events[number % mapping_events];
  event.address = address;
  event.bytes = bytes;
  event.source = source;
  std::atomic_ref(event.number).store(number, std::memory_order_release);
}

Entry site_of(CallSite call) {
  const Entry known = known_site(call);
  return known != 0 ? known : find_site(call);
}

struct LoggedMapping {
  static void* map(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset,
                   CallSite site) {
    const auto result =
        reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
    if (result != MAP_FAILED && has_log()) {
      const int saved_errno = errno;
      enter_event(address_of(result), whole_pages(bytes), site_of(site));
      errno = saved_errno;
    }
    return result;
  }

  static void* resize(void* old, std::size_t old_bytes, std::size_t bytes, int flags, void* target,
                      CallSite) {
    const auto result =
        reinterpret_cast<void*>(syscall(SYS_mremap, old, old_bytes, bytes, flags, target));
    if (result == MAP_FAILED || !has_log()) return result;
    const std::uint64_t from = address_of(old);
    const std::uint64_t before = whole_pages(old_bytes);
    const std::uint64_t now = whole_pages(bytes);
    enter_event(address_of(result), now, from);
    if (result != old && (flags & MREMAP_DONTUNMAP) == 0)
      enter_event(from, before, unmapped);
    else if (result == old && now < before)
      enter_event(from + now, before - now, unmapped);
    return result;
  }

  static int unmap(void* at, std::size_t bytes, CallSite) {
    if (bytes != 0 && has_log()) enter_event(address_of(at), whole_pages(bytes), unmapped);
    return static_cast<int>(syscall(SYS_munmap, at, bytes));
  }
};

} // namespace

#define NEARFAR_MAPPING LoggedMapping
#include "base/mapping_entry_points.hpp"
