// The C interface: checks what the caller gives, and hands it down.
#include <nearfar/hmalloc.h>

#include <cerrno>
#include <cstring>

#include "alloc/decay.hpp"
#include "alloc/heap.hpp"
#include "alloc/residency.hpp"
#include "alloc/stats.hpp"
#include "alloc/trouble.hpp"
#include "alloc/variables.hpp"

using namespace nearfar;
using namespace nearfar::alloc;

namespace {

[[gnu::constructor(101)]] void start() {
  if (open_near()) configure();
}

/// Whether there is such a tier; says so if not.
bool check_tier(hm_tier tier) {
  if (tier < 0 || tier >= HM_TIER_COUNT) {
    report(EINVAL, "there is no tier %d: tiers are numbered 0 to 7", tier);
    return false;
  }
  if (open_near()) configure();
  if (tiers[tier].ready()) return true;
  report(ENODEV, "tier %d is not configured", tier);
  return false;
}

} // namespace

#undef hm_tier_of

extern "C" {

void* hmalloc(std::size_t size, hm_tier tier) noexcept {
  return allocate(static_cast<unsigned>(tier), size);
}

void* hm_malloc(hm_tier tier, std::size_t size) noexcept {
  return allocate(static_cast<unsigned>(tier), size);
}

void* hm_calloc(hm_tier tier, std::size_t count, std::size_t size) noexcept {
  return allocate_zeroed(static_cast<unsigned>(tier), count, size);
}

void* hm_realloc(hm_tier tier, void* ptr, std::size_t size) noexcept {
  if (ptr == nullptr)
    return allocate(static_cast<unsigned>(tier == HM_KEEP ? HM_NEAR : tier), size);
  if (size == 0) {
    hm_free(ptr);
    return nullptr;
  }
  if (geometry.base == 0 || !is_ours(ptr)) misuse("hm_realloc", ptr);
  const unsigned wanted = tier == HM_KEEP ? tier_of(ptr) : static_cast<unsigned>(tier);
  return reallocate(wanted, ptr, size);
}

void* hm_memalign(hm_tier tier, std::size_t alignment, std::size_t size) noexcept {
  return allocate_aligned(static_cast<unsigned>(tier), alignment, size);
}

void hm_free(void* ptr) noexcept {
  if (ptr != nullptr) release(ptr);
}

std::size_t hm_usable_size(const void* ptr) noexcept {
  return ptr == nullptr ? 0 : usable_size(ptr, "hm_usable_size");
}

void* hm_move(void* ptr, hm_tier tier) noexcept {
  const std::size_t bytes = usable_size(ptr, "hm_move");
  if (!check_tier(tier)) return nullptr;
  return reallocate(static_cast<unsigned>(tier), ptr, bytes);
}

hm_tier hm_tier_of(const void* ptr) noexcept { return hm_tier_of_inline(ptr); }

int hm_residency(const void* ptr, std::size_t bytes, struct hm_pages* found) noexcept {
  return find_residency(ptr, bytes, *found);
}

int hm_migrate(hm_tier tier, unsigned long nodes) noexcept {
  return check_tier(tier) ? migrate(static_cast<unsigned>(tier), nodes) : -1;
}

hm_tier hm_tier_create(const char* name, const char* specification) noexcept {
  if (name == nullptr || specification == nullptr) {
    report(EINVAL, "a tier has a name and a specification: neither may be NULL");
    return -1;
  }
  if (!open_near()) {
    report(ENOMEM, "this process has no address space for the window of tiers");
    return -1;
  }
  configure();
  Result<int> made = create_tier(name, specification);
  if (made) return *made;
  report(made.error());
  return -1;
}

hm_tier hm_tier_find(const char* name) noexcept {
  if (open_near()) configure();
  const int found = name == nullptr ? -1 : find_tier(name);
  if (found < 0) report(ENODEV, "there is no tier %.40s", name == nullptr ? "NULL" : name);
  return found;
}

const char* hm_tier_name(hm_tier tier) noexcept {
  return tier >= 0 && tier < HM_TIER_COUNT && tiers[tier].ready() ? tiers[tier].name : nullptr;
}

int hm_place_variables(const char* tier, char* begin, char* end, char* pages_end) noexcept {
  if (begin == end) return 0;
  const int found = hm_tier_find(tier);
  if (found >= 0) {
    Status placed =
        place_variables(static_cast<unsigned>(found), reinterpret_cast<std::byte*>(begin),
                        static_cast<std::size_t>(pages_end - begin));
    if (placed) return 0;
    report(placed.error());
  }
  say("variables of tier %s stay near: %s", tier, hm_error());
  return -1;
}

const char* hm_error() noexcept { return last_report(); }

int hm_stats(hm_tier tier, struct hm_tier_stats* stats) noexcept {
  if (!check_tier(tier)) return -1;
  fold_stats(static_cast<unsigned>(tier), *stats);
  return 0;
}

int hm_stats_write(int fd) noexcept {
  const int code = write_stats(fd);
  if (code == 0) return 0;
  report(code, "cannot write statistics to descriptor %d: %s", fd, std::strerror(code));
  return -1;
}

std::size_t hm_trim(hm_tier tier) noexcept {
  if (!check_tier(tier)) return 0;
  const auto number = static_cast<unsigned>(tier);
  flush_tier(*this_cache, number);
  const os::LockGuard guard(purge_lock());
  return purge_tier(tiers[tier], current_tick(), true);
}

} // extern "C"
