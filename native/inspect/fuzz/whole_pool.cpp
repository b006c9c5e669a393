// Whole pools: a good one with wounds, after which checksums are made right again, so that parsers
// behind them meet the damage. Every byte of the input is a choice of where, what, and which
// checksum; the first one chooses the pool and what is asked of it.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "fuzz_target.hpp"
#include "inspect/fuzz/made_pool.hpp"
#include "inspect/reach.hpp"

namespace {

using namespace nearfar::inspect;
using nearfar::fuzz::Choices;

struct Part {
  Offset begin;
  Offset bytes;
};

constexpr std::array<Part, 12> parts = {{
    {0, 160},
    {header_at::shutdown, 72},
    {descriptor_at::lanes_offset, 32},
    {descriptor_at::root_offset, 48},
    {made::lanes_offset, made::lane_count* lane_bytes},
    {made::lanes_offset, log_head_bytes + 32},
    {made::lanes_offset + lane_bytes + 960, log_head_bytes + 128},
    {made::large_object + 48, log_head_bytes + 128},
    {made::heap_offset, 64},
    {made::zone_offset, zone_head_bytes + 8 * made::chunk_count},
    {made::first_chunk, 1024},
    {0, made::pool_bytes},
}};

constexpr std::uint64_t interesting[] = {0,
                                         1,
                                         2,
                                         7,
                                         16,
                                         63,
                                         64,
                                         4096,
                                         65528,
                                         262144,
                                         made::pool_bytes,
                                         made::heap_offset,
                                         made::root_object,
                                         made::large_object,
                                         0x7fffffff,
                                         0xffffffff,
                                         ~std::uint64_t{0} / 2,
                                         ~std::uint64_t{0}};

/// The image that is wounded and healed again: copying 3 MiB an input would be most of the work.
class Patient {
public:
  explicit Patient(const made::Image& whole) : whole_(whole), image_(whole) {}

  made::Image& image() { return image_; }
  void store(Offset offset, const void* bytes, std::size_t count) {
    if (offset > image_.size() || count > image_.size() - offset) return;
    touch(offset, count);
    std::memcpy(&image_[offset], bytes, count);
  }
  void touch(Offset offset, std::size_t count) { wounds_.push_back({offset, count}); }
  void heal() {
    for (const Part& wound : wounds_)
      if (wound.begin < image_.size())
        std::memcpy(&image_[wound.begin], &whole_[wound.begin],
                    std::min<Offset>(wound.bytes, image_.size() - wound.begin));
    wounds_.clear();
  }

private:
  const made::Image& whole_;
  made::Image image_;
  std::vector<Part> wounds_;
};

void wound(Patient& patient, Choices& choices) {
  const auto kind = choices.take<std::uint8_t>();
  Offset at;
  if (kind % 16 < parts.size()) {
    const Part& part = parts[kind % 16];
    at = part.begin + choices.take<std::uint32_t>() % part.bytes;
  } else { // the beginning of a chunk: head of a run, bitmap, header of a large object
    at = made::first_chunk + choices.take<std::uint8_t>() % made::chunk_count * chunk_bytes +
         choices.take<std::uint16_t>() % 1024;
  }
  switch (kind / 16 % 4) {
  case 0: {
    std::uint8_t byte = choices.take<std::uint8_t>();
    patient.store(at, &byte, 1);
    break;
  }
  case 1: {
    const std::uint64_t word = interesting[choices.take<std::uint8_t>() % std::size(interesting)];
    patient.store(at / 8 * 8, &word, 8);
    break;
  }
  case 2: {
    const auto word = choices.take<std::uint64_t>();
    patient.store(at / 8 * 8, &word, 8);
    break;
  }
  default: {
    const auto half = choices.take<std::uint32_t>();
    patient.store(at / 4 * 4, &half, 4);
  }
  }
}

/// A bit each: header, descriptor, heap, the redo logs, the undo logs.
void fix_checksum(Patient& patient, unsigned which) {
  made::Image& image = patient.image();
  patient.touch(header_at::checksum, 8);
  patient.touch(descriptor_at::checksum, 8);
  patient.touch(made::heap_offset + heap_at::checksum, 8);
  patient.touch(made::lanes_offset, made::lane_count * lane_bytes);
  patient.touch(made::large_object + 48 + log_head_bytes, 64);
  if ((which & 1u) != 0) made::fix_header_checksum(image);
  if ((which & 2u) != 0) made::fix_descriptor_checksum(image);
  if ((which & 4u) != 0) made::fix_heap_checksum(image);
  if ((which & 8u) != 0) made::fix_redo_checksum(image, made::lanes_offset, 16);
  if ((which & 16u) != 0) {
    const Offset undo = made::lanes_offset + lane_bytes + 960;
    made::fix_undo_checksum(image, undo, undo + log_head_bytes);
    made::fix_undo_checksum(image, undo, made::large_object + 48 + log_head_bytes);
  }
}

/// What must hold of every answer, whatever the input.
void require(bool holds) {
  if (!holds) std::abort();
}

void look(const made::Image& image, std::size_t bytes, bool leaks) {
  const MemoryView view{std::span<const std::byte>(image).first(bytes)};
  if (leaks) {
    PoolReport pool;
    const Reach reach = find_lost(view, pool);
    require(reach.lost <= reach.objects);
  } else {
    const PoolReport pool = examine(view);
    require(pool.findings.kept().size() <= Findings::kept_at_most);
    require(pool.census.all().block_bytes <= bytes);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const made::Image whole[] = {made::pool(), made::interrupted_pool()};
  static Patient patients[] = {Patient(whole[0]), Patient(whole[1])};
  Choices choices(data, size);
  const auto what = choices.take<std::uint8_t>();
  const auto fixed = choices.take<std::uint8_t>();
  Patient& patient = patients[what % 2];
  std::size_t bytes = made::pool_bytes;
  if (what % 16 == 15) bytes = choices.take<std::uint32_t>() % (bytes + 1);
  for (int wounds = 0; choices.more() && wounds < 64; ++wounds)
    wound(patient, choices);
  fix_checksum(patient, fixed);
  look(patient.image(), bytes, (what & 2u) != 0);
  patient.heal();
  return 0;
}
