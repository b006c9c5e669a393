// libhmalloc for C++: an allocator for containers, and a std::pmr memory resource.
//
// Thread safety  as hmalloc.h. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <new>

#include <nearfar/hmalloc.h>

namespace nearfar {

/// Allocates in a tier: std::vector<int, nearfar::TierAllocator<int>>
/// v(TierAllocator<int>(HM_FAR)). Allocators of different tiers compare unequal; memory may be
/// freed through any of them.
template <class T>
class TierAllocator {
public:
  using value_type = T;

  explicit TierAllocator(hm_tier tier = HM_NEAR) noexcept : tier_(tier) {}
  template <class Other>
  TierAllocator(const TierAllocator<Other>& other) noexcept : tier_(other.tier()) {}

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    void* block = alignof(T) > 16 ? hm_memalign(tier_, alignof(T), count * sizeof(T))
                                  : hm_malloc(tier_, count * sizeof(T));
    if (block == nullptr) throw std::bad_alloc();
    return static_cast<T*>(block);
  }
  void deallocate(T* block, std::size_t) noexcept { hm_free(block); }

  hm_tier tier() const noexcept { return tier_; }
  template <class Other>
  bool operator==(const TierAllocator<Other>& other) const noexcept {
    return tier_ == other.tier();
  }

private:
  hm_tier tier_;
};

/// A tier as a std::pmr::memory_resource.
class TierResource : public std::pmr::memory_resource {
public:
  explicit TierResource(hm_tier tier) noexcept : tier_(tier) {}
  hm_tier tier() const noexcept { return tier_; }

private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* block = hm_memalign(tier_, alignment, bytes);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  void do_deallocate(void* block, std::size_t, std::size_t) override { hm_free(block); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    const auto* same = dynamic_cast<const TierResource*>(&other);
    return same != nullptr && same->tier_ == tier_;
  }

  hm_tier tier_;
};

} // namespace nearfar
