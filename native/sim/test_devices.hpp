// Devices for the tests of this layer: figures of DDR4-3200 in clocks, and PCM after Lee 2009.
#pragma once

#include <doctest/doctest.h>

#include "sim/device.hpp"

namespace nearfar::sim {

inline Device made(const char* name, MemoryKind kind, const Figures& figures) {
  Result<Device> device = make_device(name, kind, figures);
  REQUIRE_MESSAGE(device, device.error().what);
  return *device;
}

/// Clocks of 1 ns, so that figures are clocks; four bank groups of four, two ranks.
inline Figures ddr4_figures() {
  return {{"clock", 1},     {"tRCD", 22},       {"tRP", 22},         {"tRAS", 52},
          {"CL", 22},       {"CWL", 16},        {"burst", 4},        {"tCCD", 4},
          {"tCCDL", 8},     {"tRRD", 4},        {"tRRDL", 8},        {"tFAW", 34},
          {"tWTR", 4},      {"tWTRL", 12},      {"tWR", 24},         {"tRTP", 12},
          {"tRTRS", 2},     {"tRFC", 560},      {"tREFI", 12480},    {"ranks", 2},
          {"banks", 4},     {"bank_groups", 4}, {"row_bytes", 8192}, {"activate_J", 1e-9},
          {"read_J", 2e-9}, {"write_J", 3e-9},  {"refresh_J", 1e-7}, {"active_W", 0.5},
          {"idle_W", 0.3}};
}

inline Figures pcm_figures() {
  return {{"clock", 2.5}, {"tRCD", 55},  {"tRP", 150},      {"tRPclean", 2.5},
          {"tRAS", 55},   {"CL", 12.5},  {"CWL", 10},       {"burst", 10},
          {"tCCD", 10},   {"tRRD", 5},   {"tRRDpre", 27.5}, {"tWTR", 7.5},
          {"tWR", 15},    {"tRTP", 7.5}, {"banks", 8},      {"row_bytes", 4096}};
}

inline Device ddr4() { return made("ddr4", MemoryKind::commands, ddr4_figures()); }
inline Device pcm() { return made("pcm", MemoryKind::commands, pcm_figures()); }

} // namespace nearfar::sim
