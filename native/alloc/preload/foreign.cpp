#include "alloc/preload/foreign.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "alloc/trouble.hpp"
#include "os/address_space.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

/// The head of a chunk; the block begins behind it.
struct Chunk {
  std::size_t previous_size;
  std::size_t size_and_flags;

  static constexpr std::size_t previous_in_use = 1;
  static constexpr std::size_t mapped = 2;
  static constexpr std::size_t of_thread_arena = 4;

  std::size_t size() const { return size_and_flags & ~std::size_t{7}; }
  std::size_t flags() const { return size_and_flags & 7; }
};

/// What a heap of an arena of threads begins with.
struct HeapInfo {
  std::uintptr_t arena;
  std::uintptr_t previous;
  std::size_t size;
};

constexpr std::size_t smallest_chunk = 32;
constexpr std::uintptr_t heap_alignment = 64 << 20;

/// Where the kernel refuses to check, the pointer is trusted, as libc trusts it.
template <class T>
bool read_at(std::uintptr_t at, T& value) {
  const auto* from = reinterpret_cast<const void*>(at);
  const os::Read read = os::try_read(from, &value, sizeof value);
  if (read == os::Read::refused) std::memcpy(&value, from, sizeof value);
  return read != os::Read::absent;
}

/// Of a large block that is a mapping for itself: whole pages, the block at the first one's start.
bool is_mapping(std::uintptr_t at, const Chunk& chunk) {
  Chunk last{};
  return chunk.flags() == Chunk::mapped && (at - chunk.previous_size) % os::page_bytes == 0 &&
         (chunk.previous_size + chunk.size()) % os::page_bytes == 0 &&
         chunk.size() >= os::page_bytes && read_at(at + chunk.size() - sizeof last, last);
}

/// The heap that an address would lie in, if it is one: its arena, or that arena's first heap, says
/// so too.
os::Area thread_heap(std::uintptr_t at) {
  const std::uintptr_t begin = at & ~(heap_alignment - 1);
  HeapInfo info{};
  HeapInfo first{};
  if (!read_at(begin, info) || info.size > heap_alignment ||
      !read_at(info.arena & ~(heap_alignment - 1), first) || first.arena != info.arena)
    return {};
  return {begin + sizeof info, begin + info.size};
}

/// A chunk between others: the one behind it says that this one is in use.
bool is_in(const os::Area& area, std::uintptr_t at, const Chunk& chunk) {
  Chunk next{};
  if (at < area.begin || at >= area.end || chunk.size() < smallest_chunk ||
      chunk.size() % alignof(std::max_align_t) != 0 || chunk.size() > area.end - at ||
      !read_at(at + chunk.size(), next))
    return false;
  return (next.flags() & Chunk::previous_in_use) != 0 && (next.flags() & Chunk::mapped) == 0 &&
         next.size() >= alignof(std::max_align_t) && next.size() <= area.end - at - chunk.size();
}

} // namespace

bool may_be_of_libc(const void* ptr) {
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(ptr) - sizeof(Chunk);
  Chunk chunk{};
  if (at % alignof(std::max_align_t) != 0 || !read_at(at, chunk)) return false;
  if ((chunk.flags() & Chunk::mapped) != 0) return is_mapping(at, chunk);
  const bool threads = (chunk.flags() & Chunk::of_thread_arena) != 0;
  const os::Area area = threads ? thread_heap(at) : os::program_break();
  if (!threads && area.end == 0) return true; // /proc cannot tell: libc has to judge
  return is_in(area, at, chunk);
}

void expect_of_libc(const char* call, const void* ptr) {
  if (may_be_of_libc(ptr)) return;
  say("%s(%p): the pointer is of no heap, neither this library's nor libc's", call, ptr);
  os::abort_process();
}

} // namespace nearfar::alloc
