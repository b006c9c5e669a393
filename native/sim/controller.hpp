// Settings of a memory controller: row policy, scheduler, write queue, power states, address
// mapping.
//
// Thread safety  none: values.
#pragma once

#include <optional>

#include "sim/address_mapping.hpp"
#include "sim/completion.hpp"

namespace nearfar::sim {

/// Time at which a row that no request needs is closed.
/// open: when a request needs another row of the bank. closed: with its last access. timeout: after
/// an idle time.
enum class PagePolicy : unsigned char { open, closed, timeout };
inline constexpr std::string_view page_policy_names[] = {"open", "closed", "timeout"};

/// Choice of the next command.
/// fr_fcfs: the command that is legal first; ties: row hits, then the oldest request. fcfs: a
/// command of the oldest request only.
enum class Scheduler : unsigned char { fr_fcfs, fcfs };
inline constexpr std::string_view scheduler_names[] = {"fr-fcfs", "fcfs"};

constexpr unsigned max_drain_from = 1024;

struct Controller {
  PagePolicy page = PagePolicy::open;
  Time timeout = 100'000;   ///< idle time of a row until PagePolicy::timeout closes it
  unsigned drain_from = 32; ///< queued writes of a channel that start a drain
  unsigned drain_to = 16;   ///< queued writes that end a drain
  unsigned drain_idle = 1;  ///< queued writes that start a drain while no demand waits
  Scheduler scheduler = Scheduler::fr_fcfs;
  /// Column commands to an open row after which an older request for another row of the bank goes
  /// first; 0: no limit.
  unsigned row_hit_cap = 0;
  /// Idle time of a rank until it enters the state; `never`: the state is not used. Devices without
  /// tXP do not power down, devices without tXS do not enter self-refresh.
  Time power_down_after = never;
  Time self_refresh_after = never;
  AddressMapping mapping = default_mapping;
};

/// Errors: bad_input that names settings that contradict each other.
Status check(const Controller& controller);

/// The settings with the names and units of the user interfaces.
struct ControllerSettings {
  const char* page_policy = "open";
  double timeout_ns = 100;
  const char* scheduler = "fr-fcfs";
  unsigned row_hit_cap = 0;
  unsigned drain_from = 32;
  unsigned drain_to = 16;
  unsigned drain_idle = 1;
  const char* mapping = "rorabacobgch";
  std::optional<double> power_down_after_ns = {};
  std::optional<double> self_refresh_after_ns = {};
};

/// Errors: bad_input that names an unknown or contradictory setting.
Result<Controller> make_controller(const ControllerSettings& settings);

} // namespace nearfar::sim
