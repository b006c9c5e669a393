// A memory as the simulators see it: shape, timings, energy; checked once, then trusted.
//
// Units          times in picoseconds; those of commands are whole clocks. Energy in joules, power
//                in watts. A rank's figures are of all its chips together.
// Two kinds      commands: banks with rows, driven by activate, column command and precharge
//                (DDR3/4/5, PCM); queued: a chain of buffers in front of a medium, of which latency
//                and bandwidth alone are published (Optane-like, or a measured profile).
// In front       optionally a link (CXL): latency each way, bandwidth each way, requests in flight.
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

/// JEDEC's names. L: two commands to one bank group; without groups equal to the other.
struct Timing {
  Time clock = 0;
  Time tRCD = 0;     ///< activate to column command; to a read if tRCDWR differs
  Time tRCDWR = 0;   ///< activate to write
  Time tRP = 0;      ///< precharge to activate, of a row that was written
  Time tRPclean = 0; ///< the same of a row that was only read: less where reads destroy nothing
  Time tRAS = 0;     ///< activate to precharge
  Time CL = 0;       ///< read to its data
  Time CWL = 0;      ///< write to its data
  Time burst = 0;    ///< a line on the bus
  Time tCCD = 0;     ///< column command to column command
  Time tCCDL = 0;
  Time tCCDLWR = 0; ///< write to write of one bank group
  Time tRRD = 0;    ///< activate to activate of another bank of the rank
  Time tRRDL = 0;
  Time tRRDpre = 0; ///< precharge to precharge of another bank that writes its array (PCM)
  Time tFAW = 0;    ///< window of at most four activates of a rank
  Time t32AW = 0;   ///< window of at most 32 (GDDR)
  Time tWTR = 0;    ///< end of write data to read of the rank
  Time tWTRL = 0;
  Time tWR = 0;    ///< end of write data to precharge
  Time tRTP = 0;   ///< read to precharge
  Time tRTRS = 0;  ///< idle bus between the data of two ranks, or of a read and a write
  Time tRFC = 0;   ///< refresh to activate of a bank that it refreshes
  Time tREFI = 0;  ///< between refreshes of a bank; 0 for a memory without
  Time tXP = 0;    ///< end of power-down to the next command; 0 for a memory without
  Time tXS = 0;    ///< end of self-refresh to the next command; 0 for a memory without
  Time tCKE = 0;   ///< shortest power-down
  Time tCKESR = 0; ///< shortest self-refresh

  /// Rounds up to the next clock edge.
  Time whole_clocks(Time at) const { return (at + clock - 1) / clock * clock; }
};

/// All but row_bytes counts; all powers of two.
struct Shape {
  std::uint64_t channels = 1;
  std::uint64_t ranks = 1;
  std::uint64_t groups = 1;
  std::uint64_t banks = 1; ///< of a group
  std::uint64_t row_bytes = 0;
  std::uint64_t command_buses = 1;  ///< 2: row and column commands have one each (HBM)
  std::uint64_t command_clocks = 1; ///< of an activate or column command on its bus (DDR5: 2)
  /// Sets of banks of a rank that are refreshed one after another; bank number modulo sets is the
  /// set. 1: all banks at once; `banks`: the same bank of each group (DDR5's same-bank refresh);
  /// `banks` * `groups`: single banks.
  std::uint64_t refresh_sets = 1;
};

struct Energy {
  double activate = 0;    ///< a row brought into the buffer, and closed again if it was only read
  double array_write = 0; ///< what closing a written row takes beyond that
  double read = 0;        ///< a line out of the row buffer
  double write = 0;       ///< a line into it
  double refresh = 0;     ///< one refresh command
  double active_W = 0;    ///< a rank with an open row
  double idle_W = 0;      ///< a rank with none
  double active_power_down_W = 0; ///< a rank that powered down with an open row
  double power_down_W = 0;        ///< a rank that powered down with none
  double self_refresh_W = 0;
  bool known = false; ///< false if the profile has no figures: no energy is reported
};

struct Buffer {
  std::uint64_t bytes = 0;
  std::uint64_t entry_bytes = 0;
  Time latency = 0; ///< of a read that hits it
};

struct Queued {
  std::vector<Buffer> buffers;   ///< the innermost first
  Time read_latency = 0;         ///< of a read that reaches the medium
  Time write_latency = 0;        ///< until a write is safe
  std::uint64_t unit_bytes = 64; ///< what the medium reads and writes at once
  double read_bytes_per_s = 0;
  double write_bytes_per_s = 0;
  double both_bytes_per_s = 0; ///< reads and writes at the same time; 0: they alternate
};

/// Latency one way at a load of both directions together.
struct LinkLoad {
  double bytes_per_s = 0;
  Time latency = 0;
};

struct Link {
  Time latency = 0;              ///< one way; 0 and no bandwidth: no link
  std::vector<LinkLoad> by_load; ///< if known, by increasing load; takes the place of `latency`
  double bytes_per_s = 0;        ///< one way
  std::uint64_t queue = 0;       ///< requests in flight at most; 0: no limit
  bool present() const { return bytes_per_s > 0; }
};

enum class MemoryKind : unsigned char { commands, queued };
inline constexpr std::string_view memory_kind_names[] = {"commands", "queued"};

struct Device {
  std::string name;
  MemoryKind kind = MemoryKind::commands;
  Timing timing;
  Shape shape;
  Queued queued;
  Link link;
  Energy energy;
};

/// A figure by the name that profiles give it: "tRCD" in ns, "banks", "read_bandwidth" in B/s, ...
using Figures = std::vector<std::pair<std::string, double>>;

/// Builds and checks. Timings in ns are rounded up to whole clocks. Buffers are
/// buffer0_bytes, buffer0_entry_bytes, buffer0_latency and so on; points of the link's latency by
/// load are link_load0_bandwidth, link_load0_latency and so on.
/// Errors: bad_input that names the figure that is absent, unknown or contradicts another.
Result<Device> make_device(const char* name, MemoryKind kind, const Figures& figures);

/// What happened in one memory; energy and wear are computed from it.
struct Work {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t row_hits = 0;
  std::uint64_t activates = 0;
  std::uint64_t array_writes = 0; ///< rows closed that had been written
  std::uint64_t refreshes = 0;    ///< commands
  Time active = 0;                ///< time with an open row, summed over ranks
  Time active_power_down = 0;     ///< of it in power-down
  Time power_down = 0;            ///< in power-down without an open row, summed over ranks
  Time self_refresh = 0;          ///< summed over ranks
  std::uint64_t buffer_hits = 0;  ///< queued: reads that did not reach the medium

  Work& operator+=(const Work& other);
};

/// Joules by what they were spent on.
struct Spent {
  double activate = 0;
  double array_write = 0;
  double read = 0;
  double write = 0;
  double refresh = 0;
  double background = 0;
  double total() const { return activate + array_write + read + write + refresh + background; }
};

/// Over `end` picoseconds from the start.
Spent energy_of(const Device& device, const Work& work, Time end);

} // namespace nearfar::sim
