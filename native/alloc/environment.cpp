// Configuration of process_allocator by environment variables.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "alloc/allocator.hpp"
#include "alloc/diagnostics.hpp"
#include "alloc/fork.hpp"
#include "alloc/stats.hpp"
#include "os/process.hpp"
#include "os/signals.hpp"

namespace nearfar::alloc {

namespace {

constexpr std::size_t value_bytes = 2048; ///< longest value of a variable
constexpr int exit_bad_input = 2, exit_unsupported = 3;

constinit std::atomic<bool> configured{false};

/// Reports an invalid value, and ends the process. `subject`: the variable and ": ", or "".
[[noreturn]] void fail(const char* subject, const Error& error) {
  log_error("%s%s%s%s", subject, error.what, error.next[0] != '\0' ? "; " : "", error.next);
  const bool input =
      error.code == Errc::bad_input || error.code == Errc::not_found || error.code == Errc::exists;
  os::exit_process(input ? exit_bad_input : exit_unsupported);
}

[[noreturn]] void fail(const char* subject, const char* what, std::string_view value) {
  fail(subject, Error::make(Errc::bad_input, "%s '%.*s'", what, static_cast<int>(value.size()),
                            value.data()));
}

bool read_exact(const char* name, char (&value)[value_bytes]) {
  if (!os::environment(name, value, sizeof value)) {
    log_error("%s: the value is longer than %zu bytes", name, sizeof value - 1);
    os::exit_process(exit_bad_input);
  }
  return value[0] != '\0';
}

/// Reads a variable, or if it is not set the one without the prefix, as in version 0.1. Returns
/// false if neither is set.
bool read_variable(const char* name, char (&value)[value_bytes]) {
  constexpr std::string_view prefix = "NEARFAR_";
  if (read_exact(name, value)) return true;
  const char* old_name = name + prefix.size();
  if (!read_exact(old_name, value)) return false;
  log_error("%s is deprecated: set %s instead", old_name, name);
  return true;
}

/// Removes the part up to the first separator from `rest`, and returns it.
std::string_view next_part(std::string_view& rest, char separator) {
  const std::string_view part = rest.substr(0, rest.find(separator));
  rest.remove_prefix(part.size() < rest.size() ? part.size() + 1 : part.size());
  return part;
}

void create_tier_of(const char* subject, const char* name, const char* specification) {
  if (Result<int> made = process_allocator.create_tier(name, specification); !made)
    fail(subject, made.error());
}

void configure_near() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_NEAR", value)) return;
  Result<TierOptions> options = parse_tier_options(value);
  if (!options) fail("NEARFAR_HMALLOC_NEAR: ", options.error());
  if (Status s = process_allocator.tiers[0].apply(*options); !s)
    fail("NEARFAR_HMALLOC_NEAR: ", s.error());
}

void configure_far() {
  char value[value_bytes];
  if (read_variable("NEARFAR_HMALLOC_FAR", value))
    return create_tier_of("NEARFAR_HMALLOC_FAR: ", "far", value);
  const unsigned long memory_only = os::nodes_with_memory() & ~os::nodes_with_processors();
  if (memory_only == 0) return;
  std::snprintf(value, sizeof value, "numa:%d", __builtin_ctzl(memory_only));
  if (Result<int> made = process_allocator.create_tier("far", value); !made)
    return; // ENODEV when it is used
}

void configure_other_tiers() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_TIERS", value)) return;
  for (std::string_view rest(value); !rest.empty();) {
    const std::string_view part = next_part(rest, ';');
    const std::size_t equals = part.find('=');
    if (equals == part.npos || equals >= tier_name_bytes)
      fail("NEARFAR_HMALLOC_TIERS: ", "expected NAME=SPECIFICATION, not", part);
    char name[tier_name_bytes] = "";
    char specification[value_bytes] = "";
    std::memcpy(name, part.data(), equals);
    std::memcpy(specification, part.data() + equals + 1, part.size() - equals - 1);
    create_tier_of("NEARFAR_HMALLOC_TIERS: ", name, specification);
  }
}

void configure_hardening() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_HARDEN", value)) return;
  constexpr std::string_view quarantine = "quarantine=";
  for (std::string_view rest(value); !rest.empty();) {
    std::string_view part = next_part(rest, ',');
    std::uint64_t bytes = 0;
    Settings& settings = process_allocator.settings;
    constexpr std::size_t quarantine_of_all = std::size_t{1} << 20;
    const bool all = part == "all";
    if (all || part == "guard" || part == "canary" || part == "wipe") {
      settings.guard |= all || part == "guard";
      settings.canary |= all || part == "canary";
      settings.wipe |= all || part == "wipe";
      if (all) settings.quarantine_bytes = quarantine_of_all;
    } else if (part.starts_with(quarantine)) {
      part.remove_prefix(quarantine.size());
      if (!parse_size(part, bytes))
        fail("NEARFAR_HMALLOC_HARDEN: ", "invalid size of the quarantine", part);
      settings.quarantine_bytes = bytes;
    } else {
      fail("NEARFAR_HMALLOC_HARDEN: ", "expected guard, canary, wipe, quarantine=SIZE or all, not",
           part);
    }
  }
  if (process_allocator.settings.writes_blocks()) process_allocator.drop_stacks();
}

void configure_decay() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_DECAY_MS", value)) return;
  char* end = nullptr;
  const long milliseconds = std::strtol(value, &end, 10);
  constexpr long longest = 3'600'000;
  if (*end != '\0' || milliseconds < -1 || milliseconds > longest)
    fail("NEARFAR_HMALLOC_DECAY_MS: ", "expected a number from -1 to 3600000, not", value);
  process_allocator.decay.set_ms(static_cast<int>(milliseconds));
}

void configure_default() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_DEFAULT", value)) return;
  const int found = process_allocator.find_tier(value);
  if (found < 0) fail("NEARFAR_HMALLOC_DEFAULT: ", "no such tier", value);
  process_allocator.settings.default_tier = found;
}

void configure_plan() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_PLAN", value)) return;
  if (Status s = load_plan(process_allocator, value); !s) fail("NEARFAR_HMALLOC_PLAN: ", s.error());
  process_allocator.settings.has_plan = true;
  process_allocator.mappings.start(process_allocator);
}

void configure_statistics() {
  char when[value_bytes];
  char file[value_bytes];
  read_variable("NEARFAR_HMALLOC_STATS_FILE", file);
  if (!read_variable("NEARFAR_HMALLOC_STATS", when)) return;
  if (Status s = schedule_statistics(when, file); !s) fail("NEARFAR_HMALLOC_STATS: ", s.error());
}

void configure_all() {
  register_fork_handlers();
  configure_decay();
  configure_hardening();
  configure_near();
  configure_far();
  configure_other_tiers();
  if (Status s = process_allocator.resolve_spill_targets(); !s) fail("", s.error());
  configure_statistics();
}

} // namespace

void configure_preload() {
  configure_default();
  configure_plan();
  process_allocator.choose_home();
}

bool is_configured() { return configured.load(std::memory_order_acquire); }

void configure() {
  if (is_configured()) return;
  os::Lock& lock = process_allocator.configuration_lock;
  if (lock.held_by_this_thread()) return; // an allocation of configure_all()
  const os::SignalsBlocked blocked;
  const os::LockGuard guard(lock);
  if (configured.load(std::memory_order_relaxed)) return;
  configure_all();
  process_allocator.choose_home();
  configured.store(true, std::memory_order_release);
}

} // namespace nearfar::alloc
