#include "inspect/descriptor.hpp"

#include <array>
#include <cinttypes>

#include "inspect/checksum.hpp"

namespace nearfar::inspect {

namespace {

constexpr const char* part = "descriptor";
constexpr std::size_t page_size = 4096;
using Page = std::array<std::byte, page_size>; ///< of the file from descriptor_at::begin on

std::uint64_t word(const Page& page, Offset offset) {
  return load<std::uint64_t>(&page[offset - descriptor_at::begin]);
}

bool range_within(Offset begin, Offset bytes, Offset outer_begin, Offset outer_end) {
  return begin >= outer_begin && begin <= outer_end && bytes <= outer_end - begin;
}

Descriptor parse(const Page& page, Offset file_bytes) {
  Descriptor d;
  const char* layout = reinterpret_cast<const char*>(page.data());
  d.layout.assign(layout, strnlen(layout, layout_bytes));
  d.lanes_offset = word(page, descriptor_at::lanes_offset);
  d.lane_count = word(page, descriptor_at::lane_count);
  d.heap_offset = word(page, descriptor_at::heap_offset);
  d.heap_bytes = word(page, descriptor_at::heap_size);
  d.root_offset = word(page, descriptor_at::root_offset);
  d.root_bytes = word(page, descriptor_at::root_size);
  d.run_id = word(page, descriptor_at::run_id);
  d.mapped_bytes = file_bytes / page_bytes * page_bytes;
  return d;
}

void check_checksum(const Page& page, Findings& findings) {
  const std::size_t own = descriptor_at::checksum - descriptor_at::begin;
  const std::uint64_t found = checksum(std::span(page).first(descriptor_bytes), own);
  const std::uint64_t stored = word(page, descriptor_at::checksum);
  if (stored != found)
    findings.damage(part, descriptor_at::checksum,
                    "the descriptor's checksum is %#" PRIx64 ", its bytes sum up to %#" PRIx64,
                    stored, found);
}

bool check_lanes(const Descriptor& d, Findings& findings) {
  const Offset first = descriptor_at::begin + page_bytes;
  const bool aligned = d.lanes_offset % line_bytes == 0;
  const bool fits = d.lane_count <= d.mapped_bytes / lane_bytes &&
                    range_within(d.lanes_offset, d.lane_count * lane_bytes, first, d.mapped_bytes);
  if (aligned && fits && d.lane_count > 0) return true;
  findings.damage(part, descriptor_at::lanes_offset,
                  "%" PRIu64 " lanes at offset %#" PRIx64 " do not fit in a file of %" PRIu64
                  " bytes",
                  d.lane_count, d.lanes_offset, d.mapped_bytes);
  return false;
}

bool check_heap(const Descriptor& d, Findings& findings) {
  if (d.heap_offset % page_bytes != 0 || d.heap_offset >= d.mapped_bytes) {
    findings.damage(part, descriptor_at::heap_offset,
                    "the heap's offset %#" PRIx64 " is not a page within the file", d.heap_offset);
    return false;
  }
  if (d.heap_offset < d.lanes_offset + d.lane_count * lane_bytes) {
    findings.damage(part, descriptor_at::heap_offset, "the heap at %#" PRIx64 " overlaps the lanes",
                    d.heap_offset);
    return false;
  }
  const Offset room = d.mapped_bytes - d.heap_offset;
  if (d.heap_bytes > room) {
    findings.damage(part, descriptor_at::heap_size,
                    "the heap has %" PRIu64 " bytes, but the file ends after %" PRIu64 " of them",
                    d.heap_bytes, room);
    return false;
  }
  if (d.heap_bytes < smallest_heap_bytes) {
    findings.damage(part, descriptor_at::heap_size,
                    "the heap has %" PRIu64 " bytes, the smallest possible one %" PRIu64,
                    d.heap_bytes, smallest_heap_bytes);
    return false;
  }
  if (d.heap_bytes < room)
    findings.note(part, descriptor_at::heap_size,
                  "%" PRIu64 " bytes behind the heap are used by nothing", room - d.heap_bytes);
  return true;
}

} // namespace

bool Descriptor::storable(Offset offset, Offset bytes) const {
  return range_within(offset, bytes, heap_offset, heap_end()) ||
         range_within(offset, bytes, lanes_offset, lanes_offset + lane_count * lane_bytes) ||
         (bytes == sizeof(std::uint64_t) &&
          (offset == descriptor_at::root_offset || offset == descriptor_at::root_size));
}

Descriptor read_descriptor(const PoolView& view, Findings& findings) {
  Page page;
  if (!view.read(descriptor_at::begin, page.data(), page.size())) {
    findings.unreadable(part, descriptor_at::begin, page.size());
    return {};
  }
  Descriptor d = parse(page, view.size());
  check_checksum(page, findings);
  if (d.run_id % 2 != 0)
    findings.damage(part, descriptor_at::run_id, "the run number %" PRIu64 " is odd", d.run_id);
  if (d.heap_bytes == 0 && d.heap_offset < d.mapped_bytes) {
    d.heap_bytes = d.mapped_bytes - d.heap_offset;
    findings.note(part, descriptor_at::heap_size,
                  "the heap's size is not set: the pool was never opened after it was made");
  }
  const bool lanes = check_lanes(d, findings);
  d.usable = lanes && check_heap(d, findings);
  return d;
}

void read_root(const PoolView& recovered, Descriptor& descriptor) {
  const auto at = recovered.number<Offset>(descriptor_at::root_offset);
  const auto bytes = recovered.number<Offset>(descriptor_at::root_size);
  descriptor.root_offset = at.value_or(descriptor.root_offset);
  descriptor.root_bytes = bytes.value_or(descriptor.root_bytes);
}

} // namespace nearfar::inspect
