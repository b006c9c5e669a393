#include "crash/runtime/copies.hpp"

#include <algorithm>
#include <utility>

#include "crash/runtime/page_rights.hpp"
#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

namespace {

/// Copies from `size` to 2 `size` bytes, which may overlap: all are loaded before any is stored.
template <std::size_t size>
void copy_ends(char* to, const char* from, std::size_t bytes) {
  struct Piece {
    char bytes[size];
  };
  const Piece first = *reinterpret_cast<const Piece*>(from);
  const Piece last = *reinterpret_cast<const Piece*>(from + bytes - size);
  *reinterpret_cast<Piece*>(to) = first;
  *reinterpret_cast<Piece*>(to + bytes - size) = last;
}

/// Loops that the compiler must not turn into calls of the functions that they replace.
void copy_up(char* to, const char* from, std::size_t bytes) {
  // The instruction takes as long to start as a short copy.
  if (bytes >= 8 && bytes <= 16) return copy_ends<8>(to, from, bytes);
  if (bytes > 16 && bytes <= 32) return copy_ends<16>(to, from, bytes);
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
void copy_down(char* to, const char* from, std::size_t bytes) {
  while (bytes-- > 0) {
    to[bytes] = from[bytes];
    asm volatile("" : : : "memory");
  }
}
void fill_up(char* to, int value, std::size_t bytes) {
  asm volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
}

/// The first part of a range that is loaded or stored in one piece, and where.
struct Part {
  char* at;
  std::size_t bytes;
};
Part first_part(char* at, std::size_t bytes) {
  if (const RecordedRegion* region = region_of(at); region != nullptr) {
    const auto into = static_cast<std::size_t>(at - region->start);
    const std::size_t part = same_right(*region, at, bytes);
    return {region->is_writable(into) ? region->alias + into : at, part};
  }
  for (int i = 0; i < regions.count; ++i)
    if (regions.region[i].start > at)
      bytes = std::min(bytes, static_cast<std::size_t>(regions.region[i].start - at));
  return {at, bytes};
}

/// Loads go to the writable mapping, too: a processor (Intel's with fast short `rep movsb`) compares
/// addresses to see that ranges overlap, and copies wrong bytes through two mappings of the same.
Part first_part(const char* at, std::size_t bytes) {
  return first_part(const_cast<char*>(at), bytes);
}

void move_down(char* to, const char* from, std::size_t bytes) {
  const Part part = first_part(to, bytes);
  if (part.bytes < bytes) move_down(to + part.bytes, from + part.bytes, bytes - part.bytes);
  copy_down(part.at, from, part.bytes);
}

thread_local const void* program_call = nullptr;

} // namespace

CopyingFor::CopyingFor(const void* code) : before_(std::exchange(program_call, code)) {}
CopyingFor::~CopyingFor() { program_call = before_; }
const void* copying_for(const void* caller) {
  return program_call == nullptr ? caller : program_call;
}

void move_bytes(char* to, const char* from, std::size_t bytes) {
  if (to > from && to < from + bytes) return move_down(to, from, bytes);
  while (bytes > 0) {
    const Part source = first_part(from, bytes);
    const Part part = first_part(to, source.bytes);
    copy_up(part.at, source.at, part.bytes);
    to += part.bytes;
    from += part.bytes;
    bytes -= part.bytes;
  }
}

void fill_bytes(char* to, int value, std::size_t bytes) {
  while (bytes > 0) {
    const Part part = first_part(to, bytes);
    fill_up(part.at, value, part.bytes);
    to += part.bytes;
    bytes -= part.bytes;
  }
}

void recorded_copy(void* to, const void* from, std::size_t bytes, EventKind kind,
                   const void* code) {
  move_bytes(static_cast<char*>(to), static_cast<const char*>(from), bytes);
  if (regions.count == 0) return;
  if (two_hosts.load(std::memory_order_relaxed)) report_load(from, bytes, code);
  report_store(kind, to, bytes, code);
}

void recorded_fill(void* to, int value, std::size_t bytes, EventKind kind, const void* code) {
  fill_bytes(static_cast<char*>(to), value, bytes);
  if (regions.count > 0) report_store(kind, to, bytes, code);
}

} // namespace nearfar::crash::runtime
