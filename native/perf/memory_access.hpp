// One sampled access to memory, in a form that does not depend on the hardware.
//
// Hardware       not validated on hardware; see data_source.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "perf/data_source.hpp"
#include "perf/record.hpp"

namespace nearfar::perf {

struct MemoryAccess {
  DataSource source;
  std::optional<std::uint64_t> address;
  std::uint64_t latency_cycles = 0; ///< 0 if not measured: stores, AMD's hits in L1
};

/// The access of a sample of a memory event: from the fields that the kernel decoded, else from the
/// registers of AMD's IBS if the event is of the PMU ibs_op. Empty if the sample is not of a load
/// or store.
std::optional<MemoryAccess> memory_access(const Sample& sample, bool is_ibs_op);

} // namespace nearfar::perf
