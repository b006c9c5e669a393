// A small typed pool in memory, written from poolformat/heads.hpp: two types, an empty log, one
// link of a chunk. Each target of nearfar's own formats lays its input over a part of it.
#pragma once

#include <cstdlib>

#include "fuzz_target.hpp"
#include "inspect/typed.hpp"

namespace nearfar::inspect::made_store {

inline constexpr Offset heap = 8192;
inline constexpr Offset root = heap + 64;
inline constexpr Offset owner = root + 64;
inline constexpr Offset types = heap + 4096;
inline constexpr Offset log = heap + 8192;
inline constexpr Offset lines = 32;
inline constexpr Offset directory = log + lines * line_bytes;
inline constexpr Offset chunk = directory + 4096;
inline constexpr Offset size_bytes = chunk + (Offset{1} << 16);

inline Descriptor place() {
  Descriptor d;
  d.heap_offset = heap;
  d.mapped_bytes = size_bytes;
  d.heap_bytes = size_bytes - heap;
  d.root_offset = root;
  d.root_bytes = 64 + sizeof(poolformat::StoreHead) + 64;
  d.usable = true;
  return d;
}

/// Objects must lie in the pool, whatever the input.
class Bounded final : public ObjectSink {
public:
  void object(const Object& object) override {
    if (object.offset >= size_bytes || object.bytes > size_bytes - object.offset) std::abort();
  }
};

/// A pool with two types, an empty log, and a directory that links one chunk, all zeros.
inline std::vector<std::byte> sound() {
  std::vector<std::byte> image(size_bytes);
  const auto put = [&](Offset at, const auto& value) {
    std::memcpy(&image[at], &value, sizeof value);
  };
  put(root, poolformat::PoolHead{poolformat::PoolHead::expected_magic,
                                 size_bytes,
                                 owner,
                                 sizeof(poolformat::StoreHead) + 64,
                                 0,
                                 0,
                                 {}});
  put(owner, poolformat::StoreHead{poolformat::StoreHead::expected_magic,
                                   1,
                                   poolformat::Path::redo,
                                   2,
                                   types,
                                   log,
                                   lines,
                                   directory,
                                   1,
                                   1,
                                   {}});
  put(types, poolformat::TypeEntry{"root", 64, 0, 0, 1});
  put(types + sizeof(poolformat::TypeEntry), poolformat::TypeEntry{"node", 24, 0, 1, 0});
  put(types + 2 * sizeof(poolformat::TypeEntry), poolformat::LinkEntry{8, 1, 0, 0});
  put(directory + 8, chunk);
  return image;
}

/// What every answer must satisfy.
inline void look(const std::vector<std::byte>& image) {
  const MemoryView view{std::span<const std::byte>(image)};
  PatchedView patched(view);
  Findings findings;
  Bounded sink;
  const Typed typed = examine_typed(view, place(), patched, findings, sink);
  if (typed.object_chunks.objects > size_bytes / 8) std::abort();
}

/// Lays the rest of an input over the image from `at` on, at most `most` bytes.
inline void lay(std::vector<std::byte>& image, Offset at, const nearfar::fuzz::Choices& choices,
                std::size_t most) {
  const std::size_t bytes = std::min(choices.rest_bytes(), most);
  if (bytes > 0) std::memcpy(&image[at], choices.rest(), bytes);
}

} // namespace nearfar::inspect::made_store
