// Replaces libc's functions that map memory. Without a plan that has rules for mappings, each call
// is passed on.
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "alloc/allocator.hpp"
#include "alloc/call_chain.hpp"
#include "alloc/preload/next_mapping.hpp"
#include "base/call_site.hpp"
#include "os/address_space.hpp"
#include "os/file.hpp"
#include "os/signals.hpp"

#ifndef MAP_HUGE_MASK
#define MAP_HUGE_MASK 0x3f
#endif

extern "C" { // of the linker: this library
[[gnu::visibility("hidden")]] extern const char __ehdr_start;
[[gnu::visibility("hidden")]] extern const char etext;
}

using namespace nearfar;
using namespace nearfar::alloc;

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

/// Whether the program, and not this library, called.
bool is_of_program(CallSite site) {
  const auto* caller = static_cast<const char*>(site.return_address);
  return caller < &__ehdr_start || caller >= &etext;
}

bool is_placed(CallSite site) { return process_allocator.mappings.active() && is_of_program(site); }

/// Walking unwind tables allocates: not while this thread evaluates the plan, nor without a cache
/// that can note that it does.
void walk_tables_once(CallSite site, std::size_t longest, CallChain& chain) {
  process_allocator.open_stacks(0);
  ThreadCache& cache = *this_thread_cache;
  if (!cache.is_owned() || cache.in_plan) return;
  cache.in_plan = true;
  walk_tables(site.return_address, longest, chain);
  cache.in_plan = false;
}

void find_chain(CallSite site, MappingOrigin& own) {
  const Plan& plan = process_allocator.plan;
  const std::size_t longest = plan.mapping.longest;
  own.chain_length = 0;
  if (longest == 0) return;
  CallChain chain;
  chain.addresses[0] = site.return_address;
  chain.length = 1;
  if (longest > 1 && plan.by_tables)
    walk_tables_once(site, longest, chain);
  else if (longest > 1)
    walk_pointers(site.frame, {}, longest, chain);
  for (std::size_t i = 0; i < chain.length; ++i)
    own.chain[i] = reinterpret_cast<std::uintptr_t>(chain.addresses[i]);
  own.chain_length = static_cast<std::uint8_t>(chain.length);
}

/// Shared anonymous memory is a file of the kernel's: it has this name in /proc/PID/maps.
void describe_contents(int flags, int fd, MappingOrigin& own) {
  const bool anonymous = (flags & MAP_ANONYMOUS) != 0;
  const bool is_private = (flags & MAP_TYPE) == MAP_PRIVATE;
  own.kind = anonymous && is_private ? MappedKind::anonymous : MappedKind::file;
  own.name[0] = '\0';
  if (anonymous && !is_private)
    std::strcpy(own.name, (flags & MAP_HUGETLB) != 0 ? "anon_hugepage" : "zero");
  else if (!anonymous && process_allocator.plan.mapping.has_files)
    os::read_file_name(fd, own.name, sizeof own.name);
}

/// The policy of a mapping changes only between its pages.
std::size_t page_bytes_of(int flags) {
  if ((flags & MAP_HUGETLB) == 0) return os::page_bytes;
  const int shift = flags >> MAP_HUGE_SHIFT & MAP_HUGE_MASK;
  return shift == 0 ? huge_page : std::size_t{1} << shift;
}

/// Origin of the mapping that a call makes. Not on the stack, which may be that of a signal
/// handler; signals are blocked during the call.
constinit thread_local MappingOrigin this_call;

void place_mapping(const void* mapped, std::size_t bytes, int flags, int fd, CallSite site) {
  const int code = errno;
  const os::SignalsBlocked blocked;
  const std::size_t page_bytes = page_bytes_of(flags);
  MappingOrigin& own = this_call;
  own.begin = reinterpret_cast<std::uintptr_t>(mapped);
  own.bytes = (bytes + page_bytes - 1) & ~(page_bytes - 1);
  find_chain(site, own);
  describe_contents(flags, fd, own);
  process_allocator.mappings.add(own, (flags & MAP_FIXED) != 0, page_bytes);
  errno = code;
}

void* resize_mapping(const ResizeCall& call, CallSite site) {
  const os::SignalsBlocked blocked;
  MappingOrigin& own = this_call;
  own.kind = MappedKind::unknown;
  own.name[0] = '\0';
  find_chain(site, own);
  return process_allocator.mappings.resize(call, own);
}

struct PlacedMapping {
  [[gnu::always_inline]] static void* map(void* at, std::size_t bytes, int protection, int flags,
                                          int fd, off_t offset, CallSite site) {
    void* mapped = next_mmap(at, bytes, protection, flags, fd, offset);
    if (is_placed(site) && mapped != MAP_FAILED) [[unlikely]]
      place_mapping(mapped, bytes, flags, fd, site);
    return mapped;
  }

  [[gnu::always_inline]] static void* resize(void* old, std::size_t old_bytes, std::size_t bytes,
                                             int flags, void* target, CallSite site) {
    if (!is_placed(site)) return next_mremap(old, old_bytes, bytes, flags, target);
    const bool keeps_old = old_bytes == 0 || (flags & MREMAP_DONTUNMAP) != 0;
    return resize_mapping({reinterpret_cast<std::uintptr_t>(old), old_bytes, bytes, flags,
                           keeps_old, target, next_mremap},
                          site);
  }

  [[gnu::always_inline]] static int unmap(void* at, std::size_t bytes, CallSite site) {
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    if (is_placed(site) && begin % os::page_bytes == 0)
      process_allocator.mappings.remove(begin, bytes); // first: it may be mapped again right after
    return next_munmap(at, bytes);
  }
};

} // namespace

#define NEARFAR_MAPPING PlacedMapping
#include "base/mapping_entry_points.hpp"

extern "C" {

NEARFAR_MAPPING_ENTRY_POINT int brk(void* end) noexcept {
  const int result = next_brk(end);
  if (result == 0 && is_placed(NEARFAR_CALL_SITE))
    process_allocator.mappings.grow_heap(reinterpret_cast<std::uintptr_t>(end));
  return result;
}

NEARFAR_MAPPING_ENTRY_POINT void* sbrk(std::intptr_t change) noexcept {
  void* before = next_sbrk(change);
  if (change != 0 && before != reinterpret_cast<void*>(-1) && is_placed(NEARFAR_CALL_SITE))
    process_allocator.mappings.grow_heap(reinterpret_cast<std::uintptr_t>(before) +
                                         static_cast<std::uintptr_t>(change));
  return before;
}

} // extern "C"
