#include "perf/memory_access.hpp"

#include "perf/ibs.hpp"

namespace nearfar::perf {

namespace {

MemoryAccess from_ibs(const IbsOp& op) { return {op.source, op.address, op.miss_latency}; }

} // namespace

std::optional<MemoryAccess> memory_access(const Sample& sample, bool is_ibs_op) {
  MemoryAccess access;
  if (sample.has(PERF_SAMPLE_DATA_SRC)) access.source = decode_data_source(sample.data_src);
  if (!access.source.load && !access.source.store) {
    if (!is_ibs_op) return std::nullopt;
    const std::optional<IbsOp> op = decode_ibs_op(sample.raw);
    if (!op || (!op->source.load && !op->source.store)) return std::nullopt;
    return from_ibs(*op);
  }
  // The kernel writes 0 where the hardware did not record the address.
  if (sample.has(PERF_SAMPLE_ADDR) && sample.addr != 0) access.address = sample.addr;
  access.latency_cycles = sample.weight;
  return access;
}

} // namespace nearfar::perf
