// A simulated memory device: organization, timings, energy. make_device() checks all figures.
//
// Units          Times in picoseconds; command timings are whole clocks. Energy in joules, power in
//                watts, each of all chips of a rank together.
// Kinds          commands: ranks and banks with rows, and JEDEC command timings (DDR, LPDDR, HBM,
//                GDDR, PCM). queued: a queue in front of a medium, with optional buffers, for
//                memories with known latency and bandwidth but without command timings (Optane,
//                measured profiles).
// Link           optional (CXL): latency and bandwidth of each direction, requests in flight.
// Thread safety  values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace nearfar::sim {

using Time = std::uint64_t; ///< picoseconds since the start

constexpr unsigned line_bytes = 64;
constexpr unsigned line_shift = 6;

/// Command timings with JEDEC's names. Suffix L: between two commands to the same bank group; equal
/// to the value without the suffix if not given.
struct Timing {
  Time clock = 0;
  Time tRCD = 0;     ///< activate to read; to write too unless tRCDWR is given
  Time tRCDWR = 0;   ///< activate to write
  Time tRP = 0;      ///< precharge to activate, after writes to the row
  Time tRPclean = 0; ///< precharge to activate, after reads only: shorter if reads are not
                     ///< destructive (PCM)
  Time tRAS = 0;     ///< activate to precharge
  Time CL = 0;       ///< read to its data
  Time CWL = 0;      ///< write to its data
  Time burst = 0;    ///< time of a line on the data bus
  Time tCCD = 0;     ///< column command to column command
  Time tCCDL = 0;
  Time tCCDLWR = 0; ///< write to write of one bank group
  Time tRRD = 0;    ///< activate to activate of another bank of the rank
  Time tRRDL = 0;
  Time tRRDpre = 0; ///< precharge to precharge of the rank, both of written rows (PCM)
  Time tFAW = 0;    ///< window of at most 4 activates of a rank
  Time t32AW = 0;   ///< window of at most 32 activates of a rank (GDDR)
  Time tWTR = 0;    ///< end of write data to read of the rank
  Time tWTRL = 0;
  Time tWR = 0;    ///< end of write data to precharge
  Time tRTP = 0;   ///< read to precharge
  Time tRTRS = 0;  ///< idle time of the data bus when the rank or the direction changes
  Time tRFC = 0;   ///< refresh to activate of a refreshed bank
  Time tREFI = 0;  ///< time between two refreshes of a bank; 0: the device needs no refresh
  Time tXP = 0;    ///< end of power-down to the next command; 0: no power-down
  Time tXS = 0;    ///< end of self-refresh to the next command; 0: no self-refresh
  Time tCKE = 0;   ///< minimum duration of a power-down
  Time tCKESR = 0; ///< minimum duration of a self-refresh

  /// Rounds up to whole clocks.
  Time whole_clocks(Time at) const { return (at + clock - 1) / clock * clock; }
};

/// Organization of the channels. All numbers are powers of two.
struct Organization {
  std::uint64_t channels = 1;
  std::uint64_t ranks = 1;  ///< per channel
  std::uint64_t groups = 1; ///< bank groups per rank
  std::uint64_t banks = 1;  ///< per group
  std::uint64_t row_bytes = 0;
  std::uint64_t command_buses = 1;  ///< 2: one for row and one for column commands (HBM)
  std::uint64_t command_clocks = 1; ///< clocks of an activate or column command (DDR5: 2)
  /// Refresh sets per rank. A refresh command refreshes one set. Bank b of a rank is in set
  /// b % refresh_sets. 1: all-bank refresh. `banks`: same-bank refresh, the same bank of each group
  /// (DDR5). `banks` * `groups`: per-bank refresh.
  std::uint64_t refresh_sets = 1;
};

struct EnergyFigures {
  double activate = 0;            ///< activate, and precharge of a row that was only read
  double array_write = 0;         ///< additional energy of the precharge of a written row
  double read = 0;                ///< read of a line from the row buffer
  double write = 0;               ///< write of a line to the row buffer
  double refresh = 0;             ///< refresh command
  double active_W = 0;            ///< rank with an open row
  double idle_W = 0;              ///< rank without an open row
  double active_power_down_W = 0; ///< rank in power-down, with an open row
  double power_down_W = 0;        ///< rank in power-down, without an open row
  double self_refresh_W = 0;
  bool known = false; ///< whether any figure was given; if not, no energy is reported
};

/// A cache level of a queued device.
struct Buffer {
  std::uint64_t bytes = 0;
  std::uint64_t entry_bytes = 0;
  Time latency = 0; ///< of a read that hits the buffer
};

/// Figures of a queued device.
struct Queued {
  std::vector<Buffer> buffers;   ///< innermost first
  Time read_latency = 0;         ///< of a read that misses all buffers
  Time write_latency = 0;        ///< until a write is complete
  std::uint64_t unit_bytes = 64; ///< access unit of the medium
  double read_bytes_per_s = 0;
  double write_bytes_per_s = 0;
  double both_bytes_per_s = 0; ///< bound of the sum of both; 0: reads and writes share the medium
};

/// One-way latency at a load. The load is the sum of both directions.
struct LinkLoad {
  double bytes_per_s = 0;
  Time latency = 0;
};

struct Link {
  Time latency = 0;              ///< one way
  std::vector<LinkLoad> by_load; ///< by increasing load; if not empty, replaces `latency`
  double bytes_per_s = 0;        ///< one way; 0: no link
  std::uint64_t queue = 0;       ///< maximum of requests in flight; 0: no limit
  bool present() const { return bytes_per_s > 0; }
};

enum class MemoryKind : unsigned char { commands, queued };
inline constexpr std::string_view memory_kind_names[] = {"commands", "queued"};

struct Device {
  std::string name;
  MemoryKind kind = MemoryKind::commands;
  Timing timing;
  Organization organization;
  Queued queued;
  Link link;
  EnergyFigures energy;
};

/// Figures with the names and units of device files (docs/formats/device.md): "tRCD" in ns,
/// "banks", "read_bandwidth" in B/s, ...
using Figures = std::vector<std::pair<std::string, double>>;

/// Builds a device and checks its figures. Timings in ns are rounded up to whole clocks. Buffers:
/// buffer0_bytes, buffer0_entry_bytes, buffer0_latency, buffer1_bytes, ... Link latency by load:
/// link_load0_bandwidth, link_load0_latency, link_load1_bandwidth, ...
/// Errors: bad_input that names a missing, unknown or contradictory figure.
Result<Device> make_device(const char* name, MemoryKind kind, const Figures& figures);

/// Events and times of one memory in a run. energy_of() computes the energy from them.
struct Activity {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t row_hits = 0; ///< accesses for which no row was activated
  std::uint64_t activates = 0;
  std::uint64_t array_writes = 0; ///< precharges of written rows
  std::uint64_t refreshes = 0;    ///< refresh commands
  Time active = 0;                ///< time with an open row, summed over ranks
  Time active_power_down = 0;     ///< part of `active` in power-down
  Time power_down = 0;            ///< time in power-down without an open row, summed over ranks
  Time self_refresh = 0;          ///< time in self-refresh, summed over ranks
  std::uint64_t buffer_hits = 0;  ///< queued devices: reads that hit a buffer

  Activity& operator+=(const Activity& other);
};

/// Energy by cause, in joules.
struct EnergyParts {
  double activate = 0;
  double array_write = 0;
  double read = 0;
  double write = 0;
  double refresh = 0;
  double background = 0;
  double total() const { return activate + array_write + read + write + refresh + background; }
};

/// Energy of the activity of a run that ends at `end`.
EnergyParts energy_of(const Device& device, const Activity& activity, Time end);

} // namespace nearfar::sim
