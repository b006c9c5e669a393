// Counts of objects by type number, and of runs by block size.
#pragma once

#include <unordered_map>

#include "inspect/objects.hpp"

namespace nearfar::inspect {

struct TypeCount {
  std::uint64_t objects = 0;
  Offset block_bytes = 0; ///< headers and rounding included
  Offset smallest = ~Offset{0};
  Offset largest = 0; ///< bytes a program may use
};

struct RunCount {
  std::uint64_t runs = 0;
  std::uint64_t chunks = 0;
  std::uint64_t blocks = 0;
  std::uint64_t used_blocks = 0;
};

/// A hostile file may have as many types as objects, and as many block sizes as runs. Types after
/// the first `max_kinds` are counted together; runs of block sizes after those are not counted.
class Census final : public ObjectSink {
public:
  static constexpr std::size_t max_kinds = 4096;

  void object(const Object& object) override;
  void run(const Run& run, const ChunkGroup& chunk, std::uint64_t used_blocks) override;

  const std::unordered_map<std::uint64_t, TypeCount>& types() const { return types_; }
  const TypeCount& further_types() const { return further_; }
  const std::unordered_map<Offset, RunCount>& runs() const { return runs_; }
  const TypeCount& internal() const { return internal_; } ///< the library's own objects
  const TypeCount& all() const { return all_; }

private:
  TypeCount& of_type(std::uint64_t type);

  std::unordered_map<std::uint64_t, TypeCount> types_;
  std::unordered_map<Offset, RunCount> runs_;
  TypeCount further_, internal_, all_;
  std::uint64_t last_type_ = 0;
  TypeCount* last_ = nullptr; ///< most objects have the type of the one before
};

} // namespace nearfar::inspect
