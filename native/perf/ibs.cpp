#include "perf/ibs.hpp"

namespace nearfar::perf {

namespace {

constexpr std::uint32_t caps_zen4 = 1u << 11; // data sources have five bits

/// The registers after the capabilities, in the order of their MSRs.
struct Registers64 {
  std::uint64_t control;
  std::uint64_t ip;
  std::uint64_t data;
  std::uint64_t data2;
  std::uint64_t data3;
  std::uint64_t linear_address;
};

bool bit(std::uint64_t value, unsigned number) { return (value >> number & 1) != 0; }

MemoryLevel coarse_level(unsigned source, bool remote) {
  switch (source) {
  case 2: return MemoryLevel::other_cache; // L3, or another core of this node
  case 3: return remote ? MemoryLevel::remote_ram : MemoryLevel::local_ram;
  case 4: return MemoryLevel::remote_cache;
  case 7: return MemoryLevel::io;
  default: return MemoryLevel::unknown;
  }
}

MemoryLevel zen4_level(unsigned source, bool remote) {
  switch (source) {
  case 1: return MemoryLevel::l3;
  case 2: return MemoryLevel::other_cache; // another core complex of this node
  case 5: return MemoryLevel::remote_cache;
  case 6: return MemoryLevel::pmem;
  case 8: return MemoryLevel::cxl;
  case 12: return MemoryLevel::io; // memory of a peer, such as a GPU
  default: return coarse_level(source, remote);
  }
}

/// The data source in data2 is valid for loads that missed L1 and L2.
MemoryLevel level_of(std::uint32_t caps, const Registers64& op, bool load) {
  const bool uncached = bit(op.data3, 14);
  const bool l1_miss = bit(op.data3, 7);
  const bool l2_miss = bit(op.data3, 20);
  if (uncached) return MemoryLevel::uncached;
  if (!l1_miss) return MemoryLevel::l1;
  if (!l2_miss) return MemoryLevel::l2;
  if (!load) return MemoryLevel::beyond_l1;
  const auto low = static_cast<unsigned>(op.data2 & 7);
  const auto high = static_cast<unsigned>(op.data2 >> 6 & 3);
  const bool remote = bit(op.data2, 4);
  return (caps & caps_zen4) != 0 ? zen4_level(high << 3 | low, remote) : coarse_level(low, remote);
}

} // namespace

std::optional<IbsOp> decode_ibs_op(ByteSpan raw) {
  Fields in(raw);
  const std::uint32_t caps = in.u32();
  const auto op = in.read<Registers64>();
  if (!in.ok()) return std::nullopt;
  IbsOp decoded;
  decoded.source.load = bit(op.data3, 0);
  decoded.source.store = bit(op.data3, 1);
  if (!decoded.source.load && !decoded.source.store) return decoded;
  decoded.source.tlb_miss = bit(op.data3, 2) && bit(op.data3, 3);
  decoded.source.locked = bit(op.data3, 15);
  decoded.source.level = level_of(caps, op, decoded.source.load);
  if (bit(op.data3, 17)) decoded.address = op.linear_address;
  if (decoded.source.load && bit(op.data3, 7))
    decoded.miss_latency = static_cast<std::uint32_t>(op.data3 >> 32 & 0xffff);
  return decoded;
}

} // namespace nearfar::perf
