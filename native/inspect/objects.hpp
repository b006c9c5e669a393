// Every allocated object of a heap, in ascending order of offsets.
//
// The walk reads the bitmaps of runs and the headers of objects through a window; the sink receives
// each object whose header agrees with the chunk or the blocks that hold it.
#pragma once

#include "inspect/heap.hpp"
#include "inspect/run.hpp"

namespace nearfar::inspect {

struct Object {
  Offset offset;      ///< of its first byte behind the header: what a PMEMoid names
  Offset bytes;       ///< that a program may use
  Offset block_bytes; ///< that it takes, header included
  std::uint64_t type; ///< type number; 0 without a header
  bool internal;      ///< made by the library: the root object, extensions of logs
};

class ObjectSink {
public:
  virtual ~ObjectSink() = default;
  virtual void object(const Object& object) = 0;
  /// Called before the objects of a run, with its blocks in use.
  virtual void run(const Run&, const ChunkGroup&, std::uint64_t /*used_blocks*/) {}
};

/// For callers that only require counts.
class NoObjects final : public ObjectSink {
public:
  void object(const Object&) override {}
};

class ObjectWalker {
public:
  ObjectWalker(const PoolView& view, Findings& findings, ObjectSink& sink)
      : bitmap_(view), blocks_(view), findings_(findings), sink_(sink) {}

  /// The objects of chunks with one header.
  void walk(const ChunkGroup& chunk);

private:
  void walk_large(const ChunkGroup& chunk);
  void walk_run(const ChunkGroup& chunk);
  std::uint64_t used_blocks(const Run& run);
  void check_padding(const Run& run);
  bool walk_word(const Run& run, const ChunkGroup& chunk, std::uint32_t index, std::uint64_t word);
  std::uint32_t object_in_run(const Run& run, const ChunkGroup& chunk, std::uint32_t block,
                              std::uint64_t bits);
  bool read_header(Offset at, std::uint16_t flags, Object& object);

  Window bitmap_;
  Window blocks_;
  Findings& findings_;
  ObjectSink& sink_;
};

} // namespace nearfar::inspect
