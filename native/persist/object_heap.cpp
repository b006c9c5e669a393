#include "persist/object_heap.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace nearfar::persist {

namespace {

constexpr std::uint64_t line = os::cache_line_bytes;
/// Bytes of a chunk of several objects: one of libpmemobj's chunks, less what libpmemobj and
/// Pool::allocate() put before it.
constexpr std::uint64_t slab_bytes = (256 << 10) - 128;
constexpr std::uint64_t largest_in_slab = 8 << 10;
constexpr std::uint64_t directory_type = 0x646972; // for pmempool info
constexpr std::uint64_t chunk_type = 0x736c6162;

std::uint64_t spacing(std::size_t bytes) {
  if (bytes <= line) return std::bit_ceil(std::max<std::size_t>(bytes, 8));
  return (bytes + line - 1) / line * line;
}

std::uint64_t words_for(std::uint64_t count) { return (count + 63) / 64; }

std::uint64_t first_object(std::uint64_t count) {
  return (sizeof(ChunkHead) + 8 * words_for(count) + line - 1) / line * line;
}

ChunkHead plan(std::uint32_t type, std::size_t bytes) {
  ChunkHead head{};
  head.type = type;
  head.object_bytes = spacing(bytes);
  head.count = 1;
  if (head.object_bytes <= largest_in_slab) {
    head.count = static_cast<std::uint32_t>((slab_bytes - sizeof(ChunkHead)) / head.object_bytes);
    while (first_object(head.count) + head.count * head.object_bytes > slab_bytes)
      --head.count;
  }
  head.objects = first_object(head.count);
  head.chunk_bytes = head.objects + head.count * head.object_bytes;
  return head;
}

} // namespace

Status PersistentObjectHeap::load() {
  for (std::uint64_t* link = directory_; *link != 0;) {
    auto* page = reinterpret_cast<DirectoryPage*>(storage_.base + *link);
    std::array<std::uint64_t*, DirectoryPage::slot_count> empty; // filled from its end
    auto first = empty.end();
    for (std::uint64_t& slot : page->slots)
      if (slot == 0)
        *--first = &slot;
      else if (Status s = load_slot(&slot); !s)
        return s.error();
    empty_slots_.insert(empty_slots_.begin(), first, empty.end()); // the lowest is the last
    link = &page->next;
  }
  return Done{};
}

Status PersistentObjectHeap::load_slot(std::uint64_t* slot) {
  if (*slot + sizeof(ChunkHead) > storage_.bytes)
    return Error::make(Errc::bad_input, "a chunk of pool %.150s lies outside it", storage_.name)
        .try_next("bring the pool back from a copy; `nearfar pool check` looks closer");
  const auto* head = reinterpret_cast<const ChunkHead*>(storage_.base + *slot);
  const bool alone = head->count == 1 && head->object_bytes > largest_in_slab;
  const bool left_over =
      head->object_bytes == 0 || (alone && *(const std::uint64_t*)(head + 1) == 0);
  if (!left_over) {
    add(slot);
    return Done{};
  }
  if (Status s = storage_.allocator->release(slot); !s) return s.error();
  empty_slots_.push_back(slot);
  return Done{};
}

PersistentObjectHeap::Chunk* PersistentObjectHeap::add(std::uint64_t* slot) {
  const auto* head = reinterpret_cast<const ChunkHead*>(storage_.base + *slot);
  auto chunk = std::make_unique<Chunk>();
  chunk->offset = *slot;
  chunk->slot = slot;
  chunk->type = head->type;
  chunk->count = head->count;
  chunk->objects = head->objects;
  chunk->object_bytes = head->object_bytes;
  chunk->busy.assign(bitmap(*chunk), bitmap(*chunk) + words_for(chunk->count));
  std::uint32_t allocated = 0;
  for (const std::uint64_t word : chunk->busy)
    allocated += static_cast<std::uint32_t>(std::popcount(word));
  chunk->room = chunk->count - std::min(allocated, chunk->count);
  if (chunk->count % 64 != 0) chunk->busy.back() |= ~std::uint64_t{0} << chunk->count % 64;
  Chunk* made = chunk.get();
  if (chunk->room > 0) with_room_[{chunk->type, chunk->object_bytes}].push_back(made);
  chunks_[chunk->offset] = std::move(chunk);
  return made;
}

Result<std::uint64_t*> PersistentObjectHeap::empty_slot() {
  if (empty_slots_.empty()) {
    std::uint64_t* link = directory_;
    while (*link != 0)
      link = &reinterpret_cast<DirectoryPage*>(storage_.base + *link)->next;
    if (Status s = storage_.allocator->allocate(link, sizeof(DirectoryPage), directory_type, true);
        !s)
      return s.error();
    auto* page = reinterpret_cast<DirectoryPage*>(storage_.base + *link);
    for (std::size_t i = DirectoryPage::slot_count; i-- > 0;)
      empty_slots_.push_back(&page->slots[i]);
  }
  return empty_slots_.back();
}

Result<PersistentObjectHeap::Chunk*> PersistentObjectHeap::make_chunk(std::uint32_t type,
                                                                      std::size_t bytes) {
  Result<std::uint64_t*> slot = empty_slot();
  if (!slot) return slot.error();
  const ChunkHead planned = plan(type, bytes);
  if (Status s = storage_.allocator->allocate(*slot, planned.chunk_bytes, chunk_type, true); !s)
    return s.error();
  empty_slots_.pop_back();
  auto* head = reinterpret_cast<ChunkHead*>(storage_.base + **slot);
  head->chunk_bytes = planned.chunk_bytes;
  head->type = planned.type;
  head->count = planned.count;
  head->objects = planned.objects;
  __atomic_store_n(&head->object_bytes, planned.object_bytes, __ATOMIC_RELEASE);
  storelog::store(head, offsetof(ChunkHead, object_bytes)); // in the order of the stores
  storelog::store(&head->object_bytes, sizeof head->object_bytes);
  write_back_->flush(head, sizeof *head);
  write_back_->fence(); // before a record can set one of its bits
  return add(*slot);
}

Result<std::uint64_t> PersistentObjectHeap::take(std::uint32_t type, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::vector<Chunk*>& candidates = with_room_[{type, spacing(bytes)}];
  if (candidates.empty())
    if (Result<Chunk*> made = make_chunk(type, bytes); !made) return made.error();
  Chunk& chunk = *candidates.back();
  while (chunk.busy[chunk.hint] == ~std::uint64_t{0})
    chunk.hint = (chunk.hint + 1) % static_cast<std::uint32_t>(chunk.busy.size());
  const auto bit = static_cast<std::uint32_t>(std::countr_one(chunk.busy[chunk.hint]));
  chunk.busy[chunk.hint] |= std::uint64_t{1} << bit;
  if (--chunk.room == 0) candidates.pop_back();
  return chunk.offset + chunk.objects + (chunk.hint * 64 + bit) * chunk.object_bytes;
}

const PersistentObjectHeap::Chunk* PersistentObjectHeap::chunk_of(std::uint64_t offset) const {
  auto after = chunks_.upper_bound(offset);
  if (after == chunks_.begin()) return nullptr;
  const Chunk& chunk = *std::prev(after)->second;
  const std::uint64_t first = chunk.offset + chunk.objects;
  const bool is_object = offset >= first && (offset - first) % chunk.object_bytes == 0 &&
                         (offset - first) / chunk.object_bytes < chunk.count;
  return is_object ? &chunk : nullptr;
}

BitPlace PersistentObjectHeap::bit_of(std::uint64_t offset) const {
  const std::lock_guard lock(mutex_);
  const Chunk* chunk = chunk_of(offset);
  if (chunk == nullptr) return {};
  const std::uint64_t index = (offset - chunk->offset - chunk->objects) / chunk->object_bytes;
  return {chunk->offset + sizeof(ChunkHead) + index / 64 * 8, std::uint64_t{1} << index % 64,
          chunk->object_bytes};
}

void PersistentObjectHeap::make_free(std::uint64_t offset) {
  auto* chunk = const_cast<Chunk*>(chunk_of(offset));
  if (chunk->object_bytes > largest_in_slab) { // it goes back to the pool
    std::uint64_t* slot = chunk->slot;
    std::erase(with_room_[{chunk->type, chunk->object_bytes}], chunk);
    chunks_.erase(chunk->offset);
    if (storage_.allocator->release(slot))
      empty_slots_.push_back(slot); // else the next opening does
    return;
  }
  const std::uint64_t index = (offset - chunk->offset - chunk->objects) / chunk->object_bytes;
  chunk->busy[index / 64] &= ~(std::uint64_t{1} << index % 64);
  chunk->hint = static_cast<std::uint32_t>(index / 64);
  if (chunk->room++ == 0) with_room_[{chunk->type, chunk->object_bytes}].push_back(chunk);
}

void PersistentObjectHeap::give_back(std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  make_free(offset);
}

bool PersistentObjectHeap::reclaim_some(std::uint64_t start) {
  const std::lock_guard lock(mutex_);
  for (; !retired_.empty() && retired_.front().lsn <= start; retired_.pop_front())
    make_free(retired_.front().offset);
  return true;
}

} // namespace nearfar::persist
