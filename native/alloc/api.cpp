// The C interface: checks arguments, and calls process_allocator.
#include <nearfar/hmalloc.h>

#include <cerrno>
#include <cstring>

#include "alloc/allocator.hpp"
#include "alloc/api.hpp"
#include "alloc/diagnostics.hpp"
#include "alloc/hooks.hpp"
#include "alloc/residency.hpp"
#include "alloc/stats.hpp"

using namespace nearfar;
using namespace nearfar::alloc;

namespace {

[[gnu::constructor(101)]] void start() {
  if (process_allocator.open()) configure();
}

[[gnu::noinline]] void* allocate_reported(unsigned tier, std::size_t size, CallSite site) {
  return report_allocated(process_allocator.allocate(tier, size), size, site);
}

[[gnu::noinline]] void release_reported(void* ptr) {
  report_free(ptr, "hm_free");
  process_allocator.release(ptr);
}

[[gnu::always_inline]] inline void* allocate(hm_tier tier, std::size_t size, CallSite site) {
  const auto number = static_cast<unsigned>(tier);
  if (hm_on_allocate != nullptr) [[unlikely]] // first: the fast path saves no registers
    return allocate_reported(number, size, site);
  return process_allocator.allocate(number, size);
}

} // namespace

namespace nearfar::alloc {

bool check_tier(hm_tier tier) {
  if (tier < 0 || tier >= HM_TIER_COUNT) {
    set_invalid_tier(tier);
    return false;
  }
  if (process_allocator.open()) configure();
  if (process_allocator.tiers[tier].ready()) return true;
  set_error(ENODEV, "tier %d is not configured", tier);
  return false;
}

} // namespace nearfar::alloc

#undef hm_tier_of

extern "C" {

void* hmalloc(std::size_t size, hm_tier tier) noexcept {
  return allocate(tier, size, NEARFAR_CALL_SITE);
}

void* hm_malloc(hm_tier tier, std::size_t size) noexcept {
  return allocate(tier, size, NEARFAR_CALL_SITE);
}

void* hm_calloc(hm_tier tier, std::size_t count, std::size_t size) noexcept {
  return report_allocated(
      process_allocator.allocate_zeroed(static_cast<unsigned>(tier), count, size), count * size,
      NEARFAR_CALL_SITE);
}

void* hm_realloc(hm_tier tier, void* ptr, std::size_t size) noexcept {
  if (ptr == nullptr) return allocate(tier == HM_KEEP ? HM_NEAR : tier, size, NEARFAR_CALL_SITE);
  if (size == 0) {
    hm_free(ptr);
    return nullptr;
  }
  if (!process_allocator.window.contains(ptr))
    abort_on_invalid_pointer(process_allocator, "hm_realloc", ptr);
  const unsigned wanted =
      tier == HM_KEEP ? process_allocator.window.tier_of(ptr) : static_cast<unsigned>(tier);
  return report_resized(ptr, size, NEARFAR_CALL_SITE, "hm_realloc",
                        [&] { return process_allocator.reallocate(wanted, ptr, size); });
}

void* hm_memalign(hm_tier tier, std::size_t alignment, std::size_t size) noexcept {
  return report_allocated(
      process_allocator.allocate_aligned(static_cast<unsigned>(tier), alignment, size), size,
      NEARFAR_CALL_SITE);
}

void hm_free(void* ptr) noexcept {
  if (ptr == nullptr) return;
  if (hm_on_free != nullptr) [[unlikely]]
    return release_reported(ptr);
  process_allocator.release(ptr);
}

std::size_t hm_usable_size(const void* ptr) noexcept {
  return ptr == nullptr ? 0 : process_allocator.usable_size(ptr, "hm_usable_size");
}

std::size_t hm_good_size(std::size_t size) noexcept { return process_allocator.good_size(size); }

void* hm_move(void* ptr, hm_tier tier) noexcept {
  const std::size_t bytes = process_allocator.usable_size(ptr, "hm_move");
  if (!check_tier(tier)) return nullptr;
  return report_resized(ptr, bytes, NEARFAR_CALL_SITE, "hm_move", [&] {
    return process_allocator.reallocate(static_cast<unsigned>(tier), ptr, bytes);
  });
}

hm_tier hm_tier_of(const void* ptr) noexcept { return hm_tier_of_inline(ptr); }

int hm_residency(const void* ptr, std::size_t bytes, struct hm_pages* found) noexcept {
  return find_residency(ptr, bytes, *found);
}

int hm_migrate(hm_tier tier, unsigned long nodes) noexcept {
  return check_tier(tier) ? migrate(process_allocator.tiers[tier], nodes) : -1;
}

hm_tier hm_tier_create(const char* name, const char* specification) noexcept {
  if (name == nullptr || specification == nullptr) {
    set_error(EINVAL, "invalid name or specification of a tier: NULL");
    return -1;
  }
  if (!process_allocator.open()) {
    set_no_window();
    return -1;
  }
  configure();
  Result<int> made = process_allocator.create_tier(name, specification);
  if (made) return *made;
  set_error(made.error());
  return -1;
}

hm_tier hm_tier_find(const char* name) noexcept {
  if (process_allocator.open()) configure();
  const int found = name == nullptr ? -1 : process_allocator.find_tier(name);
  if (found < 0) set_error(ENODEV, "no such tier: %.40s", name == nullptr ? "NULL" : name);
  return found;
}

const char* hm_tier_name(hm_tier tier) noexcept {
  return tier >= 0 && tier < HM_TIER_COUNT && process_allocator.tiers[tier].ready()
             ? process_allocator.tiers[tier].name()
             : nullptr;
}

int hm_place_variables(const char* tier, char* begin, char* end, char* pages_end) noexcept {
  if (begin == end) return 0;
  const int found = hm_tier_find(tier);
  if (found >= 0) {
    Status placed = process_allocator.variables.place(
        process_allocator.tiers[found], reinterpret_cast<std::byte*>(begin),
        static_cast<std::size_t>(pages_end - begin), process_allocator.decay.tick());
    if (placed) return 0;
    set_error(placed.error());
  }
  log_error("variables of tier %s stay near: %s", tier, hm_error());
  return -1;
}

const char* hm_error() noexcept { return last_error(); }

int hm_stats_sized(hm_tier tier, struct hm_tier_stats* stats, std::size_t bytes) noexcept {
  if (!check_tier(tier)) return -1;
  hm_tier_stats all;
  read_stats(process_allocator, static_cast<unsigned>(tier), all);
  copy_stats(all, stats, bytes);
  return 0;
}

int(hm_stats)(hm_tier tier, struct hm_tier_stats* stats) noexcept {
  return hm_stats_sized(tier, stats, first_stats_bytes);
}

int hm_ctl(const char* name, std::uint64_t* value) noexcept {
  if (name == nullptr || value == nullptr) {
    set_error(EINVAL, "invalid name or destination of a statistic: NULL");
    return -1;
  }
  if (process_allocator.open()) configure();
  Result<std::uint64_t> found = find_statistic(process_allocator, name);
  if (!found) {
    set_error(found.error());
    return -1;
  }
  *value = *found;
  return 0;
}

int hm_stats_write(int fd) noexcept {
  const int code = write_stats(process_allocator, fd);
  if (code == 0) return 0;
  set_error(code, "cannot write statistics to descriptor %d: %s", fd, std::strerror(code));
  return -1;
}

std::size_t hm_trim(hm_tier tier) noexcept {
  if (!check_tier(tier)) return 0;
  return process_allocator.trim(static_cast<unsigned>(tier));
}

} // extern "C"
