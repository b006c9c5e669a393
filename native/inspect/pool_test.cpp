#include "inspect/pool.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>

#include "inspect/fuzz/made_pool.hpp"
#include "inspect/reach.hpp"

using namespace nearfar::inspect;

namespace {

PoolReport look(const made::Image& image) { return examine(MemoryView(image)); }

/// Whether a pool with one word changed is refused for what lies at `at`.
bool refused_at(Offset changed, std::uint64_t word, Offset at, bool fixed = true) {
  made::Image image = made::pool();
  made::put(image, changed, word);
  if (fixed) {
    made::fix_header_checksum(image);
    made::fix_descriptor_checksum(image);
    made::fix_heap_checksum(image);
  }
  const PoolReport pool = look(image);
  return std::any_of(
      pool.findings.kept().begin(), pool.findings.kept().end(),
      [&](const Finding& f) { return f.severity == Severity::damage && f.offset == at; });
}

} // namespace

TEST_CASE("a pool written from the format page is consistent, and all of it is counted") {
  const PoolReport pool = look(made::pool());
  CHECK(pool.kind == FileKind::object);
  CHECK(pool.findings.kept().empty());
  CHECK(pool.descriptor.layout == "made");
  CHECK(pool.zones.chunks == made::chunk_count);
  CHECK(pool.zones.run_chunks == 5);
  CHECK(pool.zones.large_chunks == 2);
  CHECK(pool.census.all().objects == 168 + 50 + 100 + 70 + 1);
  CHECK(pool.census.internal().objects == 1);
  CHECK(pool.census.types().at(8).largest == 2 * chunk_bytes - 16);
  CHECK(pool.census.runs().at(192).blocks == 1363);
}

TEST_CASE("each damaged field is named by its offset") {
  using namespace header_at;
  CHECK(refused_at(major, 5, major));
  CHECK(refused_at(checksum, 1, checksum, false));
  CHECK(refused_at(incompat, 8 | feature_checksum_2k, incompat));
  CHECK(refused_at(neighbors, 1, neighbors));
  CHECK(refused_at(alignment, 1, alignment));
  CHECK(refused_at(descriptor_at::checksum, 1, descriptor_at::checksum, false));
  CHECK(
      refused_at(descriptor_at::lanes_offset, ~std::uint64_t{0} - 63, descriptor_at::lanes_offset));
  CHECK(refused_at(descriptor_at::lane_count, 1 << 20, descriptor_at::lanes_offset));
  CHECK(refused_at(descriptor_at::heap_offset, 8192, descriptor_at::heap_offset));
  CHECK(refused_at(descriptor_at::heap_size, made::pool_bytes, descriptor_at::heap_size));
  CHECK(refused_at(descriptor_at::run_id, 3, descriptor_at::run_id));
  CHECK(refused_at(descriptor_at::root_offset, made::root_object + 8, descriptor_at::root_offset));
  CHECK(refused_at(made::heap_offset + heap_at::checksum, 1, made::heap_offset + heap_at::checksum,
                   false));
  CHECK(refused_at(made::zone_offset, 1, made::zone_offset));
  CHECK(refused_at(made::chunk_headers, 0, made::chunk_headers));
  CHECK(refused_at(made::chunk_headers, 4, made::chunk_headers + 4));       // a run of no chunks
  CHECK(refused_at(made::chunk_headers + 16, 5, made::chunk_headers + 16)); // points elsewhere
  CHECK(refused_at(made::first_chunk, 0, made::first_chunk));
  CHECK(refused_at(made::first_chunk + 16 + 8 * 37, 0, made::first_chunk + 16 + 8 * 37));
  CHECK(refused_at(made::root_object - 16, 100, made::root_object - 16));
  CHECK(refused_at(made::large_object - 16, 4096, made::large_object - 16));
}

TEST_CASE("logs that would make an opener hang or crash are refused") {
  const Offset internal = made::lanes_offset;
  const Offset entry = internal + log_head_bytes;
  CHECK(refused_at(internal + log_at::capacity, 1 << 20, internal + log_at::capacity));
  CHECK(refused_at(internal + log_at::next, made::large_object, internal + log_at::next));
  CHECK(refused_at(entry, std::uint64_t{7} << 61 | 4096, entry)); // unknown operation
  CHECK(refused_at(entry, made::pool_bytes, entry));              // a store behind the heap
  const Offset external = internal + 256;
  CHECK(refused_at(external + log_at::next, external, external + log_at::next));
}

TEST_CASE("an extension that leads to itself ends the chain") {
  made::Image image = made::interrupted_pool();
  const Offset extension = made::large_object + 48;
  made::put(image, extension + log_at::next, extension);
  const PoolReport pool = look(image);
  CHECK(pool.findings.damage_count() != 0);
  CHECK(pool.lanes.undo.extensions == 1);
}

TEST_CASE("logs of unfinished operations are replayed, redo before undo") {
  const made::Image image = made::interrupted_pool();
  const MemoryView view(image);
  PatchedView recovered(view);
  Census census;
  PoolReport pool;
  NoObjects typed;
  examine(view, recovered, census, typed, pool);
  CHECK(pool.findings.damage_count() == 0);
  CHECK(pool.lanes.internal.pending == 1);
  CHECK(pool.lanes.undo.pending == 1);
  CHECK(pool.lanes.undo.entries == 2);
  CHECK(recovered.number<std::uint64_t>(made::root_object + 128 + 8) == made::redo_value);
  CHECK(recovered.number<std::uint64_t>(made::root_object + 256) == 0xabcd);
  CHECK(view.number<std::uint64_t>(made::root_object + 256) != 0xabcd);
}

TEST_CASE("a redo log without its checksum is torn, which is not damage, and is not replayed") {
  made::Image image = made::interrupted_pool();
  made::put(image, made::lanes_offset + log_head_bytes + 8, 0xbad);
  const PoolReport pool = look(image);
  CHECK(pool.findings.damage_count() == 0);
  CHECK(pool.lanes.internal.used == 1);
  CHECK(pool.lanes.internal.pending == 0);
}

TEST_CASE("the root object is sought where recovery puts it") {
  made::Image image = made::interrupted_pool();
  made::put(image, descriptor_at::root_offset, made::root_object + 8);
  CHECK(look(image).findings.damage_count() != 0);
  made::put(image, made::lanes_offset + log_head_bytes, descriptor_at::root_offset);
  made::put(image, made::lanes_offset + log_head_bytes + 8, made::root_object);
  made::fix_redo_checksum(image, made::lanes_offset, 16);
  const PoolReport pool = look(image);
  CHECK(pool.findings.damage_count() == 0);
  CHECK(pool.descriptor.root_offset == made::root_object);
}

TEST_CASE("a redo log that would damage the heap is refused") {
  made::Image image = made::interrupted_pool();
  made::put(image, made::lanes_offset + log_head_bytes, made::chunk_headers);
  made::put(image, made::lanes_offset + log_head_bytes + 8, 0);
  made::fix_redo_checksum(image, made::lanes_offset, 16);
  CHECK(look(image).findings.damage_count() != 0);
}

TEST_CASE("a file that is not a pool is identified") {
  made::Image image = made::pool();
  CHECK(identify(MemoryView({})) == FileKind::empty);
  CHECK(identify(MemoryView(std::span(image).subspan(4096, 100))) == FileKind::other);
  std::memcpy(image.data(), "PMEMLOG", 8);
  CHECK(identify(MemoryView(image)) == FileKind::log);
  std::memcpy(image.data(), "PMEMBLK", 8);
  CHECK(identify(MemoryView(image)) == FileKind::block);
  std::memcpy(image.data(), "PMEMPOOLSET\n", 12);
  CHECK(identify(MemoryView(image)) == FileKind::pool_set);
  std::memcpy(image.data(), "????????????", 12);
  CHECK(identify(MemoryView(image)) == FileKind::object); // by descriptor and heap
}

TEST_CASE("a view that ends early is reported, wherever it ends") {
  const made::Image image = made::pool();
  for (std::size_t bytes = 1; bytes < image.size(); bytes += 40'009)
    CHECK(examine(MemoryView(std::span(image).first(bytes))).findings.damage_count() +
              (identify(MemoryView(std::span(image).first(bytes))) == FileKind::object ? 0 : 1) !=
          0);
}

TEST_CASE("objects that nothing leads to are lost") {
  const made::Image image = made::pool();
  PoolReport pool;
  const Reach reach = find_lost(MemoryView(image), pool);
  // The chain from the root leads through chunk 0; the other chunks hang on nothing.
  CHECK(reach.objects == 168 + 50 + 100 + 70);
  CHECK(reach.lost == 50 + 100 + 70 + 1);
  REQUIRE(reach.types.size() == 4);
  CHECK(reach.types.back().type == 9);
  CHECK(reach.types.back().heads == 50);
}
