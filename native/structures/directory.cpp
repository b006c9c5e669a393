#include "structures/directory.hpp"

#include <cstdlib>

namespace nearfar::structures {

void Directory::Free::operator()(std::atomic<std::uint64_t>* slots) const { std::free(slots); }

DirectoryEntry Directory::fill(Level& level, std::uint64_t hash) {
  if (level.older == nullptr) return {};
  DirectoryEntry below = level.older->at(hash);
  if (!below) below = fill(*level.older, hash);
  if (!below) return {};
  // If a concurrent split has set this entry, its value is newer, and stays.
  std::uint64_t seen = 0;
  std::atomic<std::uint64_t>& slot = level.slots[hash >> level.shift];
  return slot.compare_exchange_strong(seen, below.word(), std::memory_order_acq_rel)
             ? below
             : DirectoryEntry{seen};
}

Status Directory::reserve(unsigned depth) {
  const std::lock_guard guard(mutex_);
  for (;;) {
    Level* newest = newest_.load(std::memory_order_relaxed);
    const unsigned bits = newest == nullptr ? 1 : 64 - newest->shift + 1; // of the next level
    if (bits > depth) return Done{};
    auto level = std::make_unique<Level>();
    level->shift = 64 - bits;
    level->older = newest;
    // calloc has zeroed pages from the kernel for what is large: nothing is touched here
    void* slots = std::calloc(std::size_t{1} << bits, sizeof(std::atomic<std::uint64_t>));
    if (slots == nullptr)
      return Error::make(Errc::no_space, "no memory for a directory of %zu segments",
                         std::size_t{1} << bits)
          .try_next("free memory, or split the map over several pools");
    level->slots.reset(static_cast<std::atomic<std::uint64_t>*>(slots));
    levels_.push_back(std::move(level));
    newest_.store(levels_.back().get(), std::memory_order_release);
  }
}

void Directory::set(std::uint64_t prefix, DirectoryEntry entry) {
  const std::lock_guard guard(mutex_);
  Level& level = *newest_.load(std::memory_order_relaxed);
  const unsigned below = 64 - level.shift - entry.depth();
  for (std::uint64_t i = prefix << below; i < (prefix + 1) << below; ++i)
    level.slots[i].store(entry.word(), std::memory_order_release);
}

void Directory::clear() {
  newest_.store(nullptr, std::memory_order_release);
  levels_.clear();
}

} // namespace nearfar::structures
