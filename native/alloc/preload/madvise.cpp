// madvise() of the program for large pages in a tier of small ones: the user's `pages=4k` holds. The
// advice is only dropped, as by a kernel that has no large page left.
#include <cstddef>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "alloc/allocator.hpp"

using namespace nearfar;
using namespace nearfar::alloc;

namespace {

constexpr int collapse = 25; ///< MADV_COLLAPSE of Linux 6.1, which glibc 2.36 does not define

bool is_on_small_pages(const void* address) {
  const Window& window = process_allocator.window;
  if (!window.contains(address)) return false;
  const TierHeap& tier = process_allocator.tiers[window.tier_of(address)];
  return tier.ready() && tier.runs.backing().options.spec.pages == os::PageSize::small_4k;
}

} // namespace

extern "C" __attribute__((visibility("default"), used)) int
madvise(void* address, std::size_t bytes, int advice) noexcept {
  const bool wants_large = advice == MADV_HUGEPAGE || advice == collapse;
  if (wants_large && is_on_small_pages(address)) return 0;
  return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
}
