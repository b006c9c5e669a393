#include "inspect/census.hpp"

#include <algorithm>

namespace nearfar::inspect {

namespace {

void add(TypeCount& count, const Object& object) {
  ++count.objects;
  count.block_bytes += object.block_bytes;
  count.smallest = std::min(count.smallest, object.bytes);
  count.largest = std::max(count.largest, object.bytes);
}

} // namespace

TypeCount& Census::of_type(std::uint64_t type) {
  if (last_ != nullptr && type == last_type_) return *last_;
  if (types_.size() >= max_kinds && !types_.contains(type)) return further_;
  last_type_ = type;
  last_ = &types_[type]; // stays where it is when others are added
  return *last_;
}

void Census::object(const Object& object) {
  add(all_, object);
  add(object.internal ? internal_ : of_type(object.type), object);
}

void Census::run(const Run& run, const ChunkGroup& chunk, std::uint64_t used_blocks) {
  if (runs_.size() >= max_kinds && !runs_.contains(run.block_bytes)) return;
  RunCount& count = runs_[run.block_bytes];
  ++count.runs;
  count.chunks += chunk.count;
  count.blocks += run.blocks;
  count.used_blocks += used_blocks;
}

} // namespace nearfar::inspect
