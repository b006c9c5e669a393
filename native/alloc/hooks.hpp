// Calls the functions of a heap profiler, if there is one (hmalloc.h).
#pragma once

#include <cstddef>
#include <nearfar/hmalloc.h>

#include "alloc/allocator.hpp"
#include "base/call_site.hpp"

namespace nearfar::alloc {

/// Returns the block, which may be nullptr.
[[gnu::always_inline]] inline void* report_allocated(void* block, std::size_t bytes,
                                                     CallSite site) {
  if (hm_on_allocate != nullptr && block != nullptr) [[unlikely]]
    hm_on_allocate(block, bytes, site.return_address, site.frame);
  return block;
}

/// `call` names the function in the message about an invalid block.
[[gnu::always_inline]] inline void report_free(const void* block, const char* call) {
  if (hm_on_free != nullptr) [[unlikely]]
    hm_on_free(block, process_allocator.usable_size(block, call));
}

/// Calls resize(), which frees the block and returns another one or the same, or keeps it and returns
/// nullptr.
template <class Resize>
[[gnu::always_inline]] inline void* report_resized(void* block, std::size_t bytes, CallSite site,
                                                   const char* call, const Resize& resize) {
  report_free(block, call);
  void* resized = resize();
  if (resized == nullptr && hm_on_allocate != nullptr)
    report_allocated(block, process_allocator.usable_size(block, call), site);
  return report_allocated(resized, bytes, site);
}

} // namespace nearfar::alloc
