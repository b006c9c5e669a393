#include "sim/device.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace nearfar::sim {

namespace {

constexpr double ps_per_ns = 1000;
constexpr double min_bandwidth = 1e6;                  ///< B/s
constexpr std::uint64_t max_banks = 1 << 16;           ///< of all channels
constexpr std::uint64_t max_link_queue = 1 << 16;      ///< requests
constexpr std::uint64_t max_unit_bytes = 1 << 20;      ///< access unit of a queued device
constexpr std::uint64_t max_buffer_bytes = 1ull << 40; ///< of one buffer

struct TimeField {
  const char* name;
  Time Timing::*at;
  bool required;
};
constexpr TimeField times[] = {
    {"clock", &Timing::clock, true},
    {"tRCD", &Timing::tRCD, true},
    {"tRCDWR", &Timing::tRCDWR, false},
    {"tRP", &Timing::tRP, true},
    {"tRPclean", &Timing::tRPclean, false},
    {"tRAS", &Timing::tRAS, true},
    {"CL", &Timing::CL, true},
    {"CWL", &Timing::CWL, true},
    {"burst", &Timing::burst, true},
    {"tCCD", &Timing::tCCD, true},
    {"tCCDL", &Timing::tCCDL, false},
    {"tCCDLWR", &Timing::tCCDLWR, false},
    {"tRRD", &Timing::tRRD, true},
    {"tRRDL", &Timing::tRRDL, false},
    {"tRRDpre", &Timing::tRRDpre, false},
    {"tFAW", &Timing::tFAW, false},
    {"t32AW", &Timing::t32AW, false},
    {"tWTR", &Timing::tWTR, true},
    {"tWTRL", &Timing::tWTRL, false},
    {"tWR", &Timing::tWR, true},
    {"tRTP", &Timing::tRTP, true},
    {"tRTRS", &Timing::tRTRS, false},
    {"tRFC", &Timing::tRFC, false},
    {"tREFI", &Timing::tREFI, false},
    {"tXP", &Timing::tXP, false},
    {"tXS", &Timing::tXS, false},
    {"tCKE", &Timing::tCKE, false},
    {"tCKESR", &Timing::tCKESR, false},
};

struct CountField {
  const char* name;
  std::uint64_t Organization::*at;
};
constexpr CountField counts[] = {
    {"channels", &Organization::channels},
    {"ranks", &Organization::ranks},
    {"bank_groups", &Organization::groups},
    {"banks", &Organization::banks},
    {"row_bytes", &Organization::row_bytes},
    {"command_buses", &Organization::command_buses},
    {"refresh_sets", &Organization::refresh_sets},
    {"command_clocks", &Organization::command_clocks},
};

struct EnergyField {
  const char* name;
  double EnergyFigures::*at;
};
constexpr EnergyField energies[] = {
    {"activate_J", &EnergyFigures::activate},
    {"array_write_J", &EnergyFigures::array_write},
    {"read_J", &EnergyFigures::read},
    {"write_J", &EnergyFigures::write},
    {"refresh_J", &EnergyFigures::refresh},
    {"active_W", &EnergyFigures::active_W},
    {"idle_W", &EnergyFigures::idle_W},
    {"active_power_down_W", &EnergyFigures::active_power_down_W},
    {"power_down_W", &EnergyFigures::power_down_W},
    {"self_refresh_W", &EnergyFigures::self_refresh_W},
};

/// Reads figures by name. A figure that is not read is an error.
class FigureReader {
public:
  FigureReader(const char* device, const Figures& figures)
      : device_(device), figures_(figures), used_(figures.size(), false) {}

  const double* find(const char* name) {
    for (std::size_t i = 0; i < figures_.size(); ++i)
      if (figures_[i].first == name) {
        used_[i] = true;
        return &figures_[i].second;
      }
    return nullptr;
  }

  double take(const char* name, bool required, double otherwise = 0) {
    const double* found = find(name);
    if (!found && required && missing_.empty()) missing_ = name;
    if (!found) return otherwise;
    if (*found >= 0 && std::isfinite(*found)) return *found;
    refuse(name, "not a number of 0 or more");
    return otherwise;
  }

  /// A time in ns, below a second.
  double time(const char* name, bool required) {
    const double ns = take(name, required);
    if (ns < 1e9) return ns;
    refuse(name, "not below a second (1e9 ns)");
    return 0;
  }

  /// A bandwidth in B/s. Below 1 MB/s, a run would consist of refreshes.
  double bandwidth(const char* name, bool required) {
    const double rate = take(name, required);
    if (rate > 0 && rate < min_bandwidth) refuse(name, "less than 1 MB/s");
    return rate;
  }

  std::uint64_t count(const char* name, bool required, double otherwise) {
    const double number = take(name, required, otherwise);
    if (number < 1e15 && number == std::floor(number)) return static_cast<std::uint64_t>(number);
    refuse(name, "not a whole number");
    return 0;
  }

  Status verdict() const {
    if (!missing_.empty())
      return Error::make(Errc::bad_input, "the device %s has no %s", device_, missing_.c_str())
          .try_next("write the figure with its source into the profile");
    if (!wrong_.empty())
      return Error::make(Errc::bad_input, "%s of the device %s is %s", wrong_.c_str(), device_,
                         what_)
          .try_next("fix it in the profile");
    for (std::size_t i = 0; i < figures_.size(); ++i)
      if (!used_[i])
        return Error::make(Errc::bad_input, "unknown figure %s of the device %s",
                           figures_[i].first.c_str(), device_)
            .try_next("remove it from the profile");
    return Done{};
  }

private:
  void refuse(const char* name, const char* what) {
    if (!wrong_.empty()) return;
    wrong_ = name;
    what_ = what;
  }

  const char* device_;
  const Figures& figures_;
  std::vector<bool> used_;
  std::string missing_;
  std::string wrong_;
  const char* what_ = "";
};

Time picoseconds(double ns) { return static_cast<Time>(std::llround(ns * ps_per_ns)); }

/// Rounds up to whole clocks. An excess of less than 0.01 clocks is taken as a rounding error of
/// the figure.
Time clocks_of_figure(double ns, Time clock) {
  const double clocks = ns * ps_per_ns / static_cast<double>(clock);
  return static_cast<Time>(std::ceil(clocks - 0.01)) * clock;
}

Error contradiction(const Device& device, const char* field, const char* rule) {
  return Error::make(Errc::bad_input, "invalid %s of the device %s: %s", field, device.name.c_str(),
                     rule)
      .try_next("fix it in the profile");
}

/// A condition on command timings or organization, and the figure that the message names.
struct FigureRule {
  bool kept;
  const char* field;
  const char* rule;
};

Status check_commands(const Device& d) {
  const Timing& t = d.timing;
  const FigureRule rules[] = {
      {t.burst > 0, "burst", "it must be above 0"},
      {t.tRCD > 0, "tRCD", "it must be above 0"},
      {t.tCCD >= t.burst, "tCCD", "it is less than burst"},
      {t.tCCDL >= t.tCCD, "tCCDL", "it is less than tCCD"},
      {t.tCCDLWR >= t.tCCDL, "tCCDLWR", "it is less than tCCDL"},
      {t.tRRDL >= t.tRRD, "tRRDL", "it is less than tRRD"},
      {t.tWTRL >= t.tWTR, "tWTRL", "it is less than tWTR"},
      {t.tRAS >= t.tRCD, "tRAS", "it is less than tRCD"},
      {t.tFAW == 0 || t.tFAW >= t.tRRD, "tFAW", "it is less than tRRD"},
      {t.t32AW == 0 || t.t32AW >= 8 * t.tFAW, "t32AW", "it is less than eight tFAW"},
      {t.tRPclean <= t.tRP, "tRPclean", "it is more than tRP"},
      {(t.tRFC == 0) == (t.tREFI == 0), t.tRFC ? "tREFI" : "tRFC",
       "give both figures of refresh, or none"},
      {t.tREFI == 0 || t.tREFI > t.tRFC + t.tRAS + t.tRP, "tREFI",
       "it leaves no time between refreshes (tRFC + tRAS + tRP)"},
      {d.organization.command_buses <= 2, "command_buses", "it must be 1 or 2"},
      {d.organization.command_clocks <= 2, "command_clocks", "it must be 1 or 2"},
      {d.organization.refresh_sets <= d.organization.banks * d.organization.groups, "refresh_sets",
       "it is more than the banks of a rank"},
      {d.organization.row_bytes >= line_bytes, "row_bytes", "it is less than a line of 64 bytes"},
  };
  for (const FigureRule& rule : rules)
    if (!rule.kept) return contradiction(d, rule.field, rule.rule);
  for (const CountField& field : counts)
    if (!std::has_single_bit(d.organization.*(field.at)) || d.organization.*(field.at) > 65536)
      return contradiction(d, field.name, "it must be a power of two up to 65536");
  const Organization& s = d.organization;
  if (s.channels * s.ranks > max_banks || s.channels * s.ranks * s.groups > max_banks ||
      s.channels * s.ranks * s.groups * s.banks > max_banks)
    return contradiction(d, "channels", "the channels together have more than 65536 banks");
  return Done{};
}

Status read_commands(Device& d, FigureReader& reader) {
  Timing& t = d.timing;
  t.clock = picoseconds(reader.time("clock", true));
  const Time clock = std::max<Time>(t.clock, 1);
  for (const TimeField& field : times)
    if (field.at != &Timing::clock)
      t.*(field.at) = clocks_of_figure(reader.time(field.name, field.required), clock);
  if (!reader.find("tRPclean")) t.tRPclean = t.tRP;
  if (!reader.find("tRCDWR")) t.tRCDWR = t.tRCD;
  if (!reader.find("tCCDL")) t.tCCDL = t.tCCD;
  if (!reader.find("tCCDLWR")) t.tCCDLWR = t.tCCDL;
  if (!reader.find("tRRDL")) t.tRRDL = t.tRRD;
  if (!reader.find("tWTRL")) t.tWTRL = t.tWTR;
  for (const CountField& field : counts)
    d.organization.*(field.at) = reader.count(
        field.name, field.at == &Organization::row_bytes || field.at == &Organization::banks, 1);
  return Done{};
}

Status read_queued(Device& d, FigureReader& reader) {
  Queued& q = d.queued;
  q.read_latency = picoseconds(reader.time("read_latency", true));
  q.write_latency = picoseconds(reader.time("write_latency", true));
  q.unit_bytes = reader.count("access_unit_bytes", false, line_bytes);
  q.read_bytes_per_s = reader.bandwidth("read_bandwidth", true);
  q.write_bytes_per_s = reader.bandwidth("write_bandwidth", true);
  q.both_bytes_per_s = reader.bandwidth("both_bandwidth", false);
  for (unsigned level = 0; level < 4; ++level) {
    const std::string stem = "buffer" + std::to_string(level);
    if (!reader.find((stem + "_bytes").c_str())) break;
    q.buffers.push_back({reader.count((stem + "_bytes").c_str(), true, 0),
                         reader.count((stem + "_entry_bytes").c_str(), true, 0),
                         picoseconds(reader.time((stem + "_latency").c_str(), true))});
  }
  return Done{};
}

constexpr unsigned max_link_loads = 256;

void read_link(Link& link, FigureReader& reader) {
  link.latency = picoseconds(reader.time("link_latency", false));
  link.bytes_per_s = reader.bandwidth("link_bandwidth", false);
  link.queue = reader.count("link_queue_depth", false, 0);
  for (unsigned i = 0; i < max_link_loads; ++i) {
    const std::string stem = "link_load" + std::to_string(i);
    if (!reader.find((stem + "_bandwidth").c_str())) break;
    link.by_load.push_back({reader.take((stem + "_bandwidth").c_str(), true),
                            picoseconds(reader.time((stem + "_latency").c_str(), true))});
  }
}

Status check_link(const Device& d) {
  if ((d.link.latency > 0 || !d.link.by_load.empty()) && !d.link.present())
    return contradiction(d, "link_bandwidth", "a link with a latency requires a bandwidth");
  if (d.link.queue > max_link_queue)
    return contradiction(d, "link_queue_depth", "it must be at most 65536");
  for (std::size_t i = 1; i < d.link.by_load.size(); ++i)
    if (d.link.by_load[i].bytes_per_s <= d.link.by_load[i - 1].bytes_per_s)
      return contradiction(d, "link_latency_by_load_ns", "its loads must increase");
  return Done{};
}

Status check_queued(const Device& d) {
  const Queued& q = d.queued;
  if (q.read_bytes_per_s <= 0) return contradiction(d, "read_bandwidth", "it is 0");
  if (q.write_bytes_per_s <= 0) return contradiction(d, "write_bandwidth", "it is 0");
  if (q.both_bytes_per_s > 0 &&
      q.both_bytes_per_s < std::max(q.read_bytes_per_s, q.write_bytes_per_s))
    return contradiction(d, "bandwidth_by_read_share", "it is less than that of one direction");
  if (q.unit_bytes < line_bytes || q.unit_bytes > max_unit_bytes ||
      !std::has_single_bit(q.unit_bytes))
    return contradiction(d, "access_unit_bytes", "it must be a power of two from 64 to 1048576");
  std::uint64_t bytes = 0;
  Time latency = 0;
  for (const Buffer& buffer : q.buffers) {
    if (buffer.entry_bytes < line_bytes || !std::has_single_bit(buffer.entry_bytes))
      return contradiction(d, "buffer_entry_by_level_bytes",
                           "an entry must be a power of two of at least 64");
    if (buffer.bytes <= bytes || buffer.bytes % buffer.entry_bytes)
      return contradiction(d, "buffer_by_level_bytes",
                           "it must increase outwards, in whole entries");
    if (buffer.bytes > max_buffer_bytes)
      return contradiction(d, "buffer_by_level_bytes", "it must be at most 1 TiB");
    if (buffer.latency < latency || buffer.latency > q.read_latency)
      return contradiction(d, "buffered_read_latency",
                           "it must not decrease outwards, nor exceed read_latency");
    bytes = buffer.bytes;
    latency = buffer.latency;
  }
  return Done{};
}

} // namespace

Result<Device> make_device(const char* name, MemoryKind kind, const Figures& figures) {
  Device d;
  d.name = name;
  d.kind = kind;
  FigureReader reader(name, figures);
  if (Status read =
          kind == MemoryKind::commands ? read_commands(d, reader) : read_queued(d, reader);
      !read)
    return read.error();
  read_link(d.link, reader);
  for (const EnergyField& field : energies) {
    d.energy.known |= reader.find(field.name) != nullptr;
    d.energy.*(field.at) = reader.take(field.name, false);
  }
  if (Status complete = reader.verdict(); !complete) return complete.error();
  if (kind == MemoryKind::commands && d.timing.clock == 0)
    return contradiction(d, "clock", "it is 0");
  if (Status sound = check_link(d); !sound) return sound.error();
  if (Status sound = kind == MemoryKind::commands ? check_commands(d) : check_queued(d); !sound)
    return sound.error();
  return d;
}

Activity& Activity::operator+=(const Activity& other) {
  reads += other.reads;
  writes += other.writes;
  row_hits += other.row_hits;
  activates += other.activates;
  array_writes += other.array_writes;
  refreshes += other.refreshes;
  active += other.active;
  active_power_down += other.active_power_down;
  power_down += other.power_down;
  self_refresh += other.self_refresh;
  buffer_hits += other.buffer_hits;
  return *this;
}

EnergyParts energy_of(const Device& device, const Activity& activity, Time end) {
  const EnergyFigures& e = device.energy;
  const auto times_of = [](std::uint64_t n, double joules) {
    return static_cast<double>(n) * joules;
  };
  EnergyParts parts;
  parts.activate = times_of(activity.activates, e.activate);
  parts.array_write = times_of(activity.array_writes, e.array_write);
  parts.read = times_of(activity.reads, e.read);
  parts.write = times_of(activity.writes, e.write);
  parts.refresh = times_of(activity.refreshes, e.refresh);
  const std::uint64_t ranks = device.kind == MemoryKind::commands
                                  ? device.organization.channels * device.organization.ranks
                                  : 1;
  const double all = static_cast<double>(end * ranks);
  const double active = std::min(static_cast<double>(activity.active), all);
  const auto active_down = static_cast<double>(activity.active_power_down);
  const auto down = static_cast<double>(activity.power_down);
  const auto refreshing = static_cast<double>(activity.self_refresh);
  parts.background = ((active - active_down) * e.active_W + active_down * e.active_power_down_W +
                      std::max(all - active - down - refreshing, 0.0) * e.idle_W +
                      down * e.power_down_W + refreshing * e.self_refresh_W) *
                     1e-12;
  return parts;
}

} // namespace nearfar::sim
