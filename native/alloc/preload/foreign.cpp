#include "alloc/preload/foreign.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "alloc/diagnostics.hpp"
#include "os/address_space.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

/// The header of a chunk; the block is behind it.
struct ChunkHeader {
  std::size_t previous_size;
  std::size_t size_and_flags;

  static constexpr std::size_t previous_in_use = 1;
  static constexpr std::size_t mapped = 2;
  static constexpr std::size_t of_thread_arena = 4;

  std::size_t size() const { return size_and_flags & ~std::size_t{7}; }
  std::size_t flags() const { return size_and_flags & 7; }
};

/// The header of a heap of an arena of threads.
struct HeapInfo {
  std::uintptr_t arena;
  std::uintptr_t previous;
  std::size_t size;
};

constexpr std::size_t smallest_chunk = 32;
constexpr std::uintptr_t heap_alignment = 64 << 20;

/// Reads memory that may be unmapped. If the kernel refuses the check, the pointer is trusted, as
/// it is by libc.
template <class T>
bool read_at(std::uintptr_t at, T& value) {
  const auto* from = reinterpret_cast<const void*>(at);
  const os::Read read = os::try_read(from, &value, sizeof value);
  if (read == os::Read::refused) std::memcpy(&value, from, sizeof value);
  return read != os::Read::absent;
}

/// Whether the header is that of a block with its own mapping: page-aligned, whole pages.
bool is_mapping(std::uintptr_t at, const ChunkHeader& chunk) {
  ChunkHeader last{};
  return chunk.flags() == ChunkHeader::mapped && (at - chunk.previous_size) % os::page_bytes == 0 &&
         (chunk.previous_size + chunk.size()) % os::page_bytes == 0 &&
         chunk.size() >= os::page_bytes && read_at(at + chunk.size() - sizeof last, last);
}

/// The heap that an address is in. Empty if its arena, or the first heap of that, is inconsistent.
os::Area thread_heap(std::uintptr_t at) {
  const std::uintptr_t begin = at & ~(heap_alignment - 1);
  HeapInfo info{};
  HeapInfo first{};
  if (!read_at(begin, info) || info.size > heap_alignment ||
      !read_at(info.arena & ~(heap_alignment - 1), first) || first.arena != info.arena)
    return {};
  return {begin + sizeof info, begin + info.size};
}

/// Whether it is a chunk of the area that the next chunk describes as in use.
bool is_chunk_in(const os::Area& area, std::uintptr_t at, const ChunkHeader& chunk) {
  ChunkHeader next{};
  if (at < area.begin || at >= area.end || chunk.size() < smallest_chunk ||
      chunk.size() % alignof(std::max_align_t) != 0 || chunk.size() > area.end - at ||
      !read_at(at + chunk.size(), next))
    return false;
  return (next.flags() & ChunkHeader::previous_in_use) != 0 &&
         (next.flags() & ChunkHeader::mapped) == 0 && next.size() >= alignof(std::max_align_t) &&
         next.size() <= area.end - at - chunk.size();
}

} // namespace

bool may_be_libc_block(const void* ptr) {
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(ptr) - sizeof(ChunkHeader);
  ChunkHeader chunk{};
  if (at % alignof(std::max_align_t) != 0 || !read_at(at, chunk)) return false;
  if ((chunk.flags() & ChunkHeader::mapped) != 0) return is_mapping(at, chunk);
  const bool threads = (chunk.flags() & ChunkHeader::of_thread_arena) != 0;
  const os::Area area = threads ? thread_heap(at) : os::program_break();
  if (!threads && area.end == 0) return true; // unknown: libc has to check
  return is_chunk_in(area, at, chunk);
}

void require_libc_block(const char* call, const void* ptr) {
  if (may_be_libc_block(ptr)) return;
  log_error("%s(%p): the pointer is neither from this library nor from libc", call, ptr);
  os::abort_process();
}

} // namespace nearfar::alloc
