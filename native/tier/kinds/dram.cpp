// dram: memory, wherever the kernel puts it.
#include "tier/kinds.hpp"

namespace nearfar::tier {

namespace {

Result<std::size_t> free_memory(const Spec&) { return os::available_memory_bytes(); }

} // namespace

const TierKind dram_kind = {.name = "dram", .form = "dram", .capacity = free_memory};

} // namespace nearfar::tier
