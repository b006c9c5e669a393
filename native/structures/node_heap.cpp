#include "structures/node_heap.hpp"

#include <algorithm>
#include <bit>

namespace nearfar::structures {

namespace {

constexpr std::size_t step = 16;           // between small sizes, and the alignment of all
constexpr unsigned small_classes = 16;     // 16, 32 ... 256
constexpr std::size_t largest_slot = 8192; // two to a slab

std::uint32_t slots_in(std::size_t slot_bytes) {
  return static_cast<std::uint32_t>(slab_bytes / slot_bytes);
}

} // namespace

unsigned VolatileSlabIndex::class_of(std::size_t bytes) {
  if (bytes <= step * small_classes)
    return static_cast<unsigned>(bytes == 0 ? 0 : (bytes - 1) / step);
  // four sizes to a doubling: 320, 384, 448, 512, 640 ...
  const auto octave = static_cast<unsigned>(std::bit_width(bytes - 1)) - 9; // 257..512 is 0
  const auto quarter = static_cast<unsigned>((bytes - 1) >> (octave + 6)) & 3u;
  return small_classes + octave * 4 + quarter;
}

std::size_t VolatileSlabIndex::slot_size(unsigned size_class) {
  if (size_class < small_classes) return (size_class + 1) * step;
  const unsigned octave = (size_class - small_classes) / 4;
  const unsigned quarter = (size_class - small_classes) % 4;
  return (std::size_t{5} + quarter) << (octave + 6);
}

std::size_t VolatileSlabIndex::footprint(std::size_t bytes) {
  if (bytes > largest_slot) return (bytes + slab_bytes - 1) / slab_bytes * slab_bytes;
  const std::uint32_t slots = slots_in(slot_size(class_of(bytes)));
  return (slab_bytes + slots - 1) / slots;
}

const VolatileSlabIndex::Chunk* VolatileSlabIndex::chunk_of(std::uint64_t link) const {
  const auto after =
      std::upper_bound(by_link_.begin(), by_link_.end(), link,
                       [&](std::uint64_t l, std::uint32_t c) { return l < chunks_[c].link; });
  if (after == by_link_.begin()) return nullptr;
  const Chunk& chunk = chunks_[*(after - 1)];
  return link < chunk.link + chunk.slabs * slab_bytes ? &chunk : nullptr;
}

std::vector<std::uint32_t>& VolatileSlabIndex::list_of(const Slab& slab) {
  return slab.slot_bytes == 0 ? free_ : partial_[class_of(slab.slot_bytes)];
}

void VolatileSlabIndex::enlist(std::uint32_t slab) {
  std::vector<std::uint32_t>& list = list_of(slabs_[slab]);
  slabs_[slab].position = static_cast<std::uint32_t>(list.size());
  list.push_back(slab);
}

void VolatileSlabIndex::delist(std::uint32_t slab) {
  std::vector<std::uint32_t>& list = list_of(slabs_[slab]);
  const std::uint32_t position = slabs_[slab].position;
  list[position] = list.back();
  slabs_[list[position]].position = position;
  list.pop_back();
  slabs_[slab].position = none;
}

/// Assigns a free slab to slots of this size, or, if that is slab_bytes, to a row of whole slabs.
void VolatileSlabIndex::assign(std::uint32_t slab, std::size_t slot_bytes) {
  delist(slab);
  slabs_[slab].slot_bytes = static_cast<std::uint32_t>(slot_bytes);
  slabs_[slab].used = 0;
  slabs_[slab].hint = 0;
  if (slot_bytes == slab_bytes) return;
  slabs_[slab].map.assign((slots_in(slot_bytes) + 63) / 64, 0);
  enlist(slab);
}

void VolatileSlabIndex::set_free(std::uint32_t slab) {
  if (slabs_[slab].position != none) delist(slab);
  slabs_[slab].slot_bytes = 0;
  enlist(slab);
}

void VolatileSlabIndex::set_slot(std::uint32_t slab, std::size_t slot) {
  slabs_[slab].map[slot / 64] |= std::uint64_t{1} << (slot % 64);
  if (++slabs_[slab].used == slots_in(slabs_[slab].slot_bytes)) delist(slab);
}

std::uint64_t VolatileSlabIndex::take(std::size_t bytes) {
  if (bytes > largest_slot)
    return take_row(static_cast<std::uint32_t>((bytes + slab_bytes - 1) / slab_bytes));
  const unsigned size_class = class_of(bytes);
  if (partial_[size_class].empty()) {
    if (free_.empty()) return 0;
    assign(free_.back(), slot_size(size_class));
  }
  const std::uint32_t index = partial_[size_class].back();
  Slab& slab = slabs_[index];
  while (slab.map[slab.hint] == ~std::uint64_t{0})
    ++slab.hint;
  const std::size_t slot =
      slab.hint * 64 + static_cast<unsigned>(std::countr_one(slab.map[slab.hint]));
  set_slot(index, slot);
  return links_[index] + slot * slab.slot_bytes;
}

void VolatileSlabIndex::give_back(std::uint64_t link, std::size_t bytes) {
  const Chunk& chunk = *chunk_of(link);
  const auto index = static_cast<std::uint32_t>(chunk.first + (link - chunk.link) / slab_bytes);
  if (bytes > largest_slot) {
    const std::size_t count = (bytes + slab_bytes - 1) / slab_bytes;
    for (std::uint32_t i = 0; i < count; ++i)
      set_free(index + i);
    return;
  }
  Slab& slab = slabs_[index];
  const auto slot = static_cast<std::uint32_t>((link - links_[index]) / slab.slot_bytes);
  slab.map[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
  slab.hint = std::min(slab.hint, slot / 64);
  --slab.used;
  if (slab.used == 0)
    set_free(index);
  else if (slab.position == none)
    enlist(index);
}

bool VolatileSlabIndex::contains(std::uint64_t link) const {
  const Chunk* chunk = chunk_of(link);
  return chunk != nullptr && (link - chunk->link) % step == 0;
}

bool VolatileSlabIndex::claim(std::uint64_t link, std::size_t bytes) {
  const Chunk* chunk = chunk_of(link);
  if (chunk == nullptr || bytes > largest_node_bytes) return false;
  const auto index = static_cast<std::uint32_t>(chunk->first + (link - chunk->link) / slab_bytes);
  if (bytes > largest_slot)
    return link == links_[index] &&
           claim_row(index, *chunk,
                     static_cast<std::uint32_t>((bytes + slab_bytes - 1) / slab_bytes));
  const std::size_t slot_bytes = slot_size(class_of(bytes));
  if (slabs_[index].slot_bytes == 0) assign(index, slot_bytes);
  const std::size_t slot = (link - links_[index]) / slot_bytes;
  if (slabs_[index].slot_bytes != slot_bytes || (link - links_[index]) % slot_bytes != 0 ||
      slot >= slots_in(slot_bytes) || (slabs_[index].map[slot / 64] >> (slot % 64) & 1) != 0)
    return false;
  set_slot(index, slot);
  return true;
}

bool VolatileSlabIndex::claim_row(std::uint32_t slab, const Chunk& chunk, std::uint32_t count) {
  if (slab + count > chunk.first + chunk.slabs) return false;
  for (std::uint32_t i = 0; i < count; ++i)
    if (slabs_[slab + i].slot_bytes != 0) return false;
  for (std::uint32_t i = 0; i < count; ++i)
    assign(slab + i, slab_bytes);
  return true;
}

std::uint64_t VolatileSlabIndex::take_row(std::uint32_t count) {
  for (std::size_t tried = 0; tried < chunks_.size(); ++tried) {
    const Chunk& chunk = chunks_[(next_row_ + tried) % chunks_.size()];
    std::uint32_t run = 0;
    for (std::uint32_t i = 0; i < chunk.slabs; ++i) {
      run = slabs_[chunk.first + i].slot_bytes == 0 ? run + 1 : 0;
      if (run < count) continue;
      next_row_ = (next_row_ + tried) % chunks_.size();
      const std::uint32_t first = chunk.first + i + 1 - count;
      claim_row(first, chunk, count);
      return links_[first];
    }
  }
  return 0;
}

void VolatileSlabIndex::add_chunk(std::uint64_t link, std::size_t slabs) {
  const auto first = static_cast<std::uint32_t>(slabs_.size());
  const auto number = static_cast<std::uint32_t>(chunks_.size());
  const auto place =
      std::upper_bound(by_link_.begin(), by_link_.end(), link,
                       [&](std::uint64_t l, std::uint32_t c) { return l < chunks_[c].link; });
  by_link_.insert(place, number);
  chunks_.push_back({link, first, static_cast<std::uint32_t>(slabs)});
  slabs_.resize(first + slabs);
  for (std::size_t i = 0; i < slabs; ++i)
    links_.push_back(link + i * slab_bytes);
  for (std::size_t i = slabs; i-- > 0;) // the first is taken first
    enlist(first + static_cast<std::uint32_t>(i));
  next_row_ = number;
}

void VolatileSlabIndex::reset() {
  const std::vector<Chunk> chunks = std::move(chunks_);
  *this = VolatileSlabIndex();
  for (const Chunk& chunk : chunks)
    add_chunk(chunk.link, chunk.slabs);
}

} // namespace nearfar::structures
