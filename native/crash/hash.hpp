// Hashes that identify images, failure points and places. Used by the explorer alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>

#include "storelog/event.hpp"

namespace nearfar::crash {

inline std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

/// Of a line at its offset. The sum over lines identifies an image independently of their order. The
/// number of the line is mixed first: a small word could make one line of its neighbor otherwise.
inline std::uint64_t hash_line(std::uint32_t line, const std::byte* content) {
  std::uint64_t hash = mix(0, line + 1);
  for (std::size_t at = 0; at < storelog::line_bytes; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, content + at, 8);
    hash = mix(hash, word);
  }
  return hash;
}

/// Of a place in the code, by the text of its file.
inline std::uint64_t hash_place(const storelog::Site& site) {
  return mix(std::hash<std::string_view>{}(site.file()), site.place());
}

/// Of a place and of the calls that led there.
inline std::uint64_t hash_calls(const storelog::Site& site) {
  std::uint64_t hash = 0;
  for (const storelog::Site* at = &site; at != nullptr; at = at->caller())
    hash = mix(hash, hash_place(*at));
  return hash;
}

} // namespace nearfar::crash
