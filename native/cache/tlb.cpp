#include "cache/tlb.hpp"

#include <bit>

namespace nearfar::cache {

Result<Tlb> Tlb::create(const std::vector<TlbLevel>& levels, unsigned page_bytes) {
  if (levels.empty())
    return Error::make(Errc::bad_input, "a TLB needs at least one level").try_next("name one");
  std::vector<Cache> caches;
  for (const TlbLevel& level : levels) {
    const std::uint64_t reach = std::uint64_t{level.entries} * page_bytes;
    Result<Cache> cache = Cache::create({reach, level.ways, page_bytes, Policy::lru});
    if (!cache) return cache.error();
    caches.push_back(std::move(*cache));
  }
  return Tlb(std::move(caches), static_cast<unsigned>(std::countr_zero(page_bytes)));
}

bool Tlb::missed(std::uint64_t page) {
  std::size_t level = 1;
  while (level < levels_.size() && !levels_[level].touch(page, false))
    ++level;
  const bool walk = level == levels_.size();
  walks_ += walk;
  for (std::size_t above = 0; above < level; ++above)
    levels_[above].fill(page, false);
  return walk;
}

} // namespace nearfar::cache
