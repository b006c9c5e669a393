// Write-back of a line, non-temporal stores, and the fence.
//
// Durability order  a line is durable, on a medium that is, once a fence that follows its flush (or
//                   its non-temporal store) has retired. Before that it may or may not be durable.
// Thread safety     each works on the line it is given; a fence orders the calling thread only.
#pragma once

#include <cstdint>
#include <emmintrin.h>

namespace nearfar::os {

/// Ways to make a store durable.
enum class Persist : unsigned char { ntstore, clwb, clflushopt, clflush, movdir64b };

/// Whether this processor has the instruction.
bool can_persist(Persist how);

inline void write_back_clwb(void* line) {
  asm volatile("clwb %0" : "+m"(*static_cast<volatile char*>(line)));
}
inline void flush_clflushopt(void* line) {
  asm volatile("clflushopt %0" : "+m"(*static_cast<volatile char*>(line)));
}
inline void flush_clflush(void* line) {
  asm volatile("clflush %0" : "+m"(*static_cast<volatile char*>(line)));
}
/// Stores 64 bytes to a line, atomically and not through the caches (MOVDIR64B).
inline void move_direct_64(void* line, const void* from) {
  asm volatile(".byte 0x66, 0x0f, 0x38, 0xf8, 0x02" // movdir64b (%rdx), %rax
               :
               : "a"(line), "d"(from)
               : "memory");
}
/// Stores 64 bytes to a line by non-temporal stores.
inline void stream_64(void* line, const void* from) {
  for (int i = 0; i < 4; ++i)
    _mm_stream_si128(static_cast<__m128i*>(line) + i,
                     _mm_loadu_si128(static_cast<const __m128i*>(from) + i));
}
inline void fence() { _mm_sfence(); }

} // namespace nearfar::os
