// How a memory controller treats rows and writes, in both engines.
//
// Thread safety  none: values.
#pragma once

#include <optional>

#include "sim/address_mapping.hpp"
#include "sim/completion.hpp"

namespace nearfar::sim {

/// When an open row is closed: when another row is required, with its last access, or after some
/// idle time.
enum class PagePolicy : unsigned char { open, closed, timeout };
inline constexpr std::string_view page_policy_names[] = {"open", "closed", "timeout"};

/// Which of the waiting requests issues the next command: the one whose command becomes legal first
/// (row hits, then the oldest, if several do), or the oldest alone.
enum class Scheduler : unsigned char { fr_fcfs, fcfs };
inline constexpr std::string_view scheduler_names[] = {"fr-fcfs", "fcfs"};

constexpr unsigned max_drain_from = 1024;

struct Controller {
  PagePolicy page = PagePolicy::open;
  Time timeout = 100'000;   ///< of PagePolicy::timeout: idle time of a row until it is closed
  unsigned drain_from = 32; ///< posted writes waiting in a channel when they start to be written
  unsigned drain_to = 16;   ///< and how many are left when reads come first again
  unsigned drain_idle = 1;  ///< and how many are enough while no read waits
  Scheduler scheduler = Scheduler::fr_fcfs;
  unsigned row_hit_cap =
      0; ///< column commands to an open row before an older request that requires
         ///< another row of the bank goes first; 0: no limit
  /// Idle time of a rank until it powers down, and until it refreshes itself; `never`: it does not.
  /// Devices without tXP and tXS do not.
  Time power_down_after = never;
  Time self_refresh_after = never;
  AddressMapping mapping = default_mapping;
};

/// Errors: bad_input that names settings that contradict each other.
Status check(const Controller& controller);

/// The settings by the names and units that users write.
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
