// An instruction in ChampSim's trace format (its inc/trace_instruction.h).
#pragma once

#include <cstdint>

namespace nearfar::trace {

struct ChampsimInstruction {
  std::uint64_t code;
  std::uint8_t is_branch, branch_taken;
  std::uint8_t destination_registers[2], source_registers[4];
  std::uint64_t stores[2];
  std::uint64_t loads[4];
};
static_assert(sizeof(ChampsimInstruction) == 64);

} // namespace nearfar::trace
