#include "sim/checker.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace nearfar::sim {

namespace {

enum class Scope : unsigned char { bank, refresh_set, group, rank, channel };

/// In the same `scope`, `second` is issued at least `distance` after `first`.
struct MinDistance {
  CommandType first;
  CommandType second;
  Scope scope;
  Time distance;
  const char* rule;
};

std::vector<MinDistance> distances_of(const Timing& t) {
  using enum CommandType;
  using enum Scope;
  const Time written = t.CWL + t.burst;
  return {
      {activate, read, bank, t.tRCD, "tRCD"},
      {activate, write, bank, t.tRCDWR, "tRCDWR"},
      {activate, precharge, bank, t.tRAS, "tRAS"},
      {read, precharge, bank, t.tRTP, "tRTP"},
      {write, precharge, bank, written + t.tWR, "tWR"},
      {activate, activate, rank, t.tRRD, "tRRD"},
      {activate, activate, group, t.tRRDL, "tRRDL"},
      {read, read, channel, t.tCCD, "tCCD"},
      {write, write, channel, t.tCCD, "tCCD"},
      {read, write, channel, t.tCCD, "tCCD"},
      {read, read, group, t.tCCDL, "tCCDL"},
      {write, write, group, t.tCCDLWR, "tCCDLWR"},
      {write, read, rank, written + t.tWTR, "tWTR"},
      {write, read, group, written + t.tWTRL, "tWTRL"},
      {refresh, activate, refresh_set, t.tRFC, "tRFC"},
      {refresh, refresh, refresh_set, t.tRFC, "tRFC"},
      {read, power_down, rank, t.CL + t.burst, "tRDPDEN"},
      {write, power_down, rank, written + t.tWR, "tWRPDEN"},
      {refresh, self_refresh, rank, t.tRFC, "tRFC"},
  };
}

bool is_access(const Command& c) {
  return c.type == CommandType::read || c.type == CommandType::write;
}

/// Whether the command occupies the command bus. Power-down and wake use the CKE signal.
bool is_on_bus(const Command& c) {
  return !c.automatic && c.type != CommandType::power_down && c.type != CommandType::wake;
}

bool is_of_rank(const Command& c) {
  return c.type == CommandType::power_down || c.type == CommandType::self_refresh ||
         c.type == CommandType::wake;
}

struct SleepState {
  CommandType type = CommandType::wake; ///< last change of the power state
  Time since = 0;
  Time usable = 0;
  const char* usable_rule = "tXP";
};

struct BankState {
  bool open = false;
  bool written = false;
  std::uint64_t row = 0;
  Time usable = 0; ///< end of tRP after the last precharge
};

class TimingCheck {
public:
  TimingCheck(const Device& device, std::span<const Command> commands, unsigned postponed)
      : t_(device.timing), organization_(device.organization), postponed_(postponed),
        distances_(distances_of(t_)), commands_(commands.begin(), commands.end()) {
    std::stable_sort(commands_.begin(), commands_.end(),
                     [](const Command& a, const Command& b) { return a.at < b.at; });
    for (const MinDistance& limit : distances_)
      horizon_ = std::max(horizon_, limit.distance);
    horizon_ = std::max(
        {horizon_, t_.tFAW, t_.t32AW, t_.tRRDpre, t_.CL + t_.CWL + 2 * t_.burst + t_.tRTRS});
  }

  std::vector<Violation> run() {
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      const Command& command = commands_[i];
      if (command.at % t_.clock) report("clock", command, command.at % t_.clock);
      if (t_.tREFI && command.type != CommandType::wake) check_refresh(command);
      check_rank(command);
      if (!is_of_rank(command)) check_bank(command);
      check_distances(i);
    }
    return std::move(found_);
  }

private:
  using Key = std::tuple<std::uint32_t, std::uint32_t>;
  using SetKey = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;

  void report(const char* rule, const Command& command, Time missing) {
    found_.push_back({rule, command.at, missing});
  }
  void require(const char* rule, const Command& command, Time from) {
    if (command.at < from) report(rule, command, from - command.at);
  }

  /// A rank in power-down or self-refresh accepts only `wake`.
  void check_rank(const Command& c) {
    SleepState& rank = ranks_[Key{c.channel, c.rank}];
    const bool sleeps = rank.type != CommandType::wake;
    if (c.type != CommandType::wake) {
      if (sleeps) report("command to a rank that sleeps", c, 0);
      require(rank.usable_rule, c, rank.usable);
      if (c.type == CommandType::self_refresh) check_self_refresh(c);
    } else if (!sleeps) {
      report("wake of a rank that is awake", c, 0);
    } else {
      const bool refreshed = rank.type == CommandType::self_refresh;
      require(refreshed ? "tCKESR" : "tCKE", c, rank.since + (refreshed ? t_.tCKESR : t_.tCKE));
      rank.usable = c.at + (refreshed ? t_.tXS : t_.tXP);
      rank.usable_rule = refreshed ? "tXS" : "tXP";
      if (refreshed && t_.tREFI) skip_refreshes(c);
    }
    if (is_of_rank(c)) {
      rank.type = c.type;
      rank.since = c.at;
    }
  }

  void check_self_refresh(const Command& c) {
    for (const auto& [key, of_bank] : last_) {
      if (!same(of_bank, c, Scope::rank)) continue;
      if (banks_[key].open) report("self-refresh with an open bank", c, 0);
      require("tRP", c, banks_[key].usable);
    }
  }

  /// The rank leaves self-refresh: refreshes that were due by now are done.
  void skip_refreshes(const Command& c) {
    for (std::uint64_t set = 0; set < organization_.refresh_sets; ++set)
      for (Time& due = due_of(c, set); due <= c.at;)
        due += t_.tREFI;
  }

  Time phase_of(std::uint64_t set) const {
    return t_.tREFI * (set + 1) / organization_.refresh_sets / t_.clock * t_.clock % t_.tREFI;
  }
  Time& due_of(const Command& c, std::uint64_t set) {
    const Time phase = phase_of(set);
    return due_.try_emplace(SetKey{c.channel, c.rank, set}, phase ? phase : t_.tREFI).first->second;
  }

  /// Precharges are legal when a refresh is due, because the refresh may need them. A refresh may
  /// be issued after its own due time, but not after the next one.
  void check_refresh(const Command& c) {
    if (c.type == CommandType::precharge) return;
    const bool is_refresh = c.type == CommandType::refresh;
    const Time phase = phase_of(set_of(c));
    Time& due = due_of(c, set_of(c));
    for (; c.at >= due + (postponed_ + is_refresh) * t_.tREFI; due += t_.tREFI)
      report("tREFI", c, c.at - due - postponed_ * t_.tREFI);
    if (is_refresh)
      due = std::min(due, ((c.at - phase) / t_.tREFI + jedec_refreshes) * t_.tREFI + phase) +
            t_.tREFI;
  }

  /// Number of the refresh set in the rank.
  std::uint64_t set_of(const Command& c) const {
    return c.bank % (organization_.groups * organization_.banks) % organization_.refresh_sets;
  }

  bool same(const Command& a, const Command& b, Scope scope) const {
    if (a.channel != b.channel) return false;
    switch (scope) {
    case Scope::channel: return true;
    case Scope::rank: return a.rank == b.rank;
    case Scope::group: return a.rank == b.rank && a.group == b.group;
    case Scope::refresh_set: return a.rank == b.rank && set_of(a) == set_of(b);
    case Scope::bank: return a.bank == b.bank;
    }
    return false;
  }

  void check_bank(const Command& c) {
    if (c.type == CommandType::refresh) {
      for (const auto& [key, of_bank] : last_)
        if (same(of_bank, c, Scope::refresh_set)) {
          if (banks_[key].open) report("refresh of an open bank", c, 0);
          require("tRP", c, banks_[key].usable);
        }
      return;
    }
    BankState& bank = banks_[Key{c.channel, c.bank}];
    last_[Key{c.channel, c.bank}] = c;
    switch (c.type) {
    case CommandType::activate:
      if (bank.open) report("activate of an open bank", c, 0);
      require("tRP", c, bank.usable);
      bank = {true, false, c.row, bank.usable};
      break;
    case CommandType::precharge:
      if (!bank.open) report("precharge of a closed bank", c, 0);
      if (bank.written) check_array_write(c);
      bank.usable = c.at + (bank.written ? t_.tRP : t_.tRPclean);
      bank.open = bank.written = false;
      break;
    case CommandType::read:
    case CommandType::write:
      if (!bank.open || bank.row != c.row) report("access to a row that is not open", c, 0);
      bank.written |= c.type == CommandType::write;
      break;
    default: break;
    }
  }

  void check_array_write(const Command& c) {
    const auto [last, first] = array_written_.try_emplace(Key{c.channel, c.rank}, c.at);
    if (!first) require("tRRDpre", c, last->second + t_.tRRDpre);
    last->second = c.at;
  }

  void check_distances(std::size_t index) {
    const Command& now = commands_[index];
    unsigned activates = 0;
    for (std::size_t i = index; i-- > 0 && commands_[i].at + horizon_ >= now.at;) {
      const Command& before = commands_[i];
      for (const MinDistance& limit : distances_)
        if (before.type == limit.first && now.type == limit.second &&
            same(before, now, limit.scope))
          require(limit.rule, now, before.at + limit.distance);
      if (before.channel != now.channel) continue;
      const bool shared = organization_.command_buses == 1 || is_access(before) == is_access(now);
      if (shared && is_on_bus(before) && is_on_bus(now))
        require("command bus", now, before.at + time_on_bus(before));
      if (before.type == CommandType::activate && now.type == CommandType::activate &&
          before.rank == now.rank && (++activates == 4 || activates == 32))
        require(activates == 4 ? "tFAW" : "t32AW", now,
                before.at + (activates == 4 ? t_.tFAW : t_.t32AW));
      require_data_bus(before, now);
    }
  }

  Time time_on_bus(const Command& c) const {
    const bool is_long = is_access(c) || c.type == CommandType::activate;
    return is_long ? organization_.command_clocks * t_.clock : t_.clock;
  }

  /// Data of two accesses do not overlap; a change of rank or direction takes tRTRS.
  void require_data_bus(const Command& before, const Command& now) {
    if (!is_access(before) || !is_access(now)) return;
    const auto lead = [&](const Command& c) {
      return c.type == CommandType::read ? t_.CL : t_.CWL;
    };
    const bool turns = before.rank != now.rank || before.type != now.type;
    const Time from = before.at + lead(before) + t_.burst + (turns ? t_.tRTRS : 0);
    const Time data = now.at + lead(now);
    if (data < from) report("data bus", now, from - data);
  }

  Timing t_;
  Organization organization_;
  unsigned postponed_;
  std::vector<MinDistance> distances_;
  std::vector<Command> commands_;
  Time horizon_ = 0;
  std::map<Key, BankState> banks_;
  std::map<Key, Command> last_;       ///< by channel and bank
  std::map<Key, SleepState> ranks_;   ///< by channel and rank
  std::map<Key, Time> array_written_; ///< by channel and rank
  std::map<SetKey, Time> due_;        ///< of the next refresh, by channel, rank and set
  std::vector<Violation> found_;
};

} // namespace

std::vector<Violation> check_timing(const Device& device, std::span<const Command> commands,
                                    unsigned postponed) {
  return TimingCheck(device, commands, postponed).run();
}

} // namespace nearfar::sim
