#include "alloc/settings.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "alloc/cache.hpp"
#include "alloc/decay.hpp"
#include "alloc/fork.hpp"
#include "alloc/plan.hpp"
#include "alloc/stats.hpp"
#include "alloc/tier_making.hpp"
#include "alloc/trouble.hpp"
#include "os/process.hpp"
#include "os/signals.hpp"

namespace nearfar::alloc {

constinit Settings settings;

namespace {

constexpr std::size_t value_bytes = 2048; ///< longest value of a variable
constexpr int exit_bad_input = 2, exit_unsupported = 3;

constinit os::Lock making;
constinit os::Lock configuring;
constinit std::atomic<bool> configured{false};

[[noreturn]] void refuse(const char* variable, const Error& error) {
  say("%s: %s%s%s", variable, error.what, error.next[0] != '\0' ? "; " : "", error.next);
  const bool input =
      error.code == Errc::bad_input || error.code == Errc::not_found || error.code == Errc::exists;
  os::exit_process(input ? exit_bad_input : exit_unsupported);
}

[[noreturn]] void refuse(const char* variable, const char* what, std::string_view value) {
  refuse(variable, Error::make(Errc::bad_input, "%s '%.*s'", what, static_cast<int>(value.size()),
                               value.data()));
}

bool read_exact(const char* name, char (&value)[value_bytes]) {
  if (!os::environment(name, value, sizeof value)) refuse(name, "the value is too long:", "");
  return value[0] != '\0';
}

/// False if the variable is not set, neither as named nor without the prefix, as in version 0.1.
bool read_variable(const char* name, char (&value)[value_bytes]) {
  constexpr std::string_view prefix = "NEARFAR_";
  if (read_exact(name, value)) return true;
  const char* old_name = name + prefix.size();
  if (!read_exact(old_name, value)) return false;
  say("%s is deprecated: set %s instead", old_name, name);
  return true;
}

/// The first part of `rest` up to a separator, which is taken off.
std::string_view next_part(std::string_view& rest, char separator) {
  const std::string_view part = rest.substr(0, rest.find(separator));
  rest.remove_prefix(part.size() < rest.size() ? part.size() + 1 : part.size());
  return part;
}

Status resolve_spill(TierHeap& tier, const Options& options) {
  const char* target = options.spill_to;
  if (target[0] == '\0') return Done{};
  const int found = find_tier(target);
  if (found < 0 || &tiers[found] == &tier)
    return Error::make(Errc::bad_input, "overflow=spill:%s: there is no such other tier", target)
        .try_next("name near, far, or a tier that is made before");
  tier.spill_to = found;
  return Done{};
}

void make_from(const char* variable, const char* name, const char* specification) {
  if (Result<int> made = create_tier(name, specification); !made) refuse(variable, made.error());
}

void configure_near() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_NEAR", value)) return;
  Result<Options> options = parse_options(value);
  if (!options) refuse("NEARFAR_HMALLOC_NEAR", options.error());
  if (Status s = adjust_near(*options); !s) refuse("NEARFAR_HMALLOC_NEAR", s.error());
}

void configure_far() {
  char value[value_bytes];
  if (read_variable("NEARFAR_HMALLOC_FAR", value))
    return make_from("NEARFAR_HMALLOC_FAR", "far", value);
  const unsigned long memory_only = os::nodes_with_memory() & ~os::nodes_with_processors();
  if (memory_only == 0) return;
  std::snprintf(value, sizeof value, "numa:%d", __builtin_ctzl(memory_only));
  if (Result<int> made = create_tier("far", value); !made) return; // ENODEV when it is used
}

void configure_others() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_TIERS", value)) return;
  for (std::string_view rest(value); !rest.empty();) {
    const std::string_view part = next_part(rest, ';');
    const std::size_t equals = part.find('=');
    if (equals == part.npos || equals >= name_bytes)
      refuse("NEARFAR_HMALLOC_TIERS", "NAME=SPEC is wanted, not", part);
    char name[name_bytes] = "";
    char specification[value_bytes] = "";
    std::memcpy(name, part.data(), equals);
    std::memcpy(specification, part.data() + equals + 1, part.size() - equals - 1);
    make_from("NEARFAR_HMALLOC_TIERS", name, specification);
  }
}

void configure_hardening() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_HARDEN", value)) return;
  constexpr std::string_view quarantine = "quarantine=";
  for (std::string_view rest(value); !rest.empty();) {
    std::string_view part = next_part(rest, ',');
    std::uint64_t bytes = 0;
    if (part == "guard") {
      settings.guard = true;
    } else if (part.starts_with(quarantine)) {
      part.remove_prefix(quarantine.size());
      if (!parse_size(part, bytes))
        refuse("NEARFAR_HMALLOC_HARDEN", "no size for quarantine:", part);
      settings.quarantine_bytes = bytes;
    } else {
      refuse("NEARFAR_HMALLOC_HARDEN", "guard and quarantine=SIZE are known, not", part);
    }
  }
}

void configure_decay() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_DECAY_MS", value)) return;
  char* end = nullptr;
  const long milliseconds = std::strtol(value, &end, 10);
  constexpr long longest = 3'600'000;
  if (*end != '\0' || milliseconds < -1 || milliseconds > longest)
    refuse("NEARFAR_HMALLOC_DECAY_MS", "a number from -1 to 3600000 is wanted, not", value);
  set_decay_ms(static_cast<int>(milliseconds));
}

void configure_default() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_DEFAULT", value)) return;
  const int found = find_tier(value);
  if (found < 0) refuse("NEARFAR_HMALLOC_DEFAULT", "there is no tier", value);
  settings.default_tier = found;
}

void configure_plan() {
  char value[value_bytes];
  if (!read_variable("NEARFAR_HMALLOC_PLAN", value)) return;
  if (Status s = load_plan(value); !s) refuse("NEARFAR_HMALLOC_PLAN", s.error());
  settings.planned = true;
}

void configure_statistics() {
  char when[value_bytes];
  char file[value_bytes];
  read_variable("NEARFAR_HMALLOC_STATS_FILE", file);
  if (!read_variable("NEARFAR_HMALLOC_STATS", when)) return;
  if (Status s = set_statistics(when, file); !s) refuse("NEARFAR_HMALLOC_STATS", s.error());
}

void configure_all() {
  watch_forks();
  configure_decay();
  configure_hardening();
  configure_near();
  configure_far();
  configure_others();
  for (TierHeap& tier : tiers)
    if (tier.ready())
      if (Status s = resolve_spill(tier, tier.runs.medium().options); !s)
        refuse(tier.name, s.error());
  configure_statistics();
}

} // namespace

void configure_preload() {
  configure_default();
  configure_plan();
}

os::Lock& configuration_lock() { return configuring; }
os::Lock& tiers_lock() { return making; }

bool open_near() {
  if (tiers[0].ready()) return true;
  if (!open_window()) return false;
  const os::SignalsBlocked blocked;
  const os::LockGuard guard(making);
  if (tiers[0].ready()) return true;
  if (!open_plain_near()) return false;
  std::strcpy(tiers[0].name, "near");
  watch_thread_ends();
  tiers[0].state.store(TierState::ready, std::memory_order_release);
  return true;
}

void configure() {
  if (configured.load(std::memory_order_acquire)) return;
  if (configuring.held_by_this_thread()) return; // an allocation made meanwhile
  const os::SignalsBlocked blocked;
  const os::LockGuard guard(configuring);
  if (configured.load(std::memory_order_relaxed)) return;
  configure_all();
  configured.store(true, std::memory_order_release);
}

int find_tier(const char* name) {
  for (unsigned t = 0; t < tier_count; ++t)
    if (tiers[t].ready() && std::strcmp(tiers[t].name, name) == 0) return static_cast<int>(t);
  return -1;
}

namespace {

/// The slot for a name: "far" has its own, others have what is free above it.
Result<unsigned> free_slot(const char* name) {
  const bool far = std::strcmp(name, "far") == 0;
  for (const TierHeap& tier : tiers)
    if (tier.ready() && std::strcmp(tier.name, name) == 0)
      return Error::make(Errc::exists, "there is a tier %s already", name);
  for (unsigned t = far ? 1 : 2; t < tier_count; ++t)
    if (tiers[t].state.load() == TierState::absent) return t;
  return Error::make(Errc::no_space, "all 8 tiers are made already");
}

} // namespace

Result<int> create_tier(const char* name, const char* specification) {
  if (!good_name(name))
    return Error::make(Errc::bad_input, "'%.40s' is no name of a tier", name)
        .try_next("take 1 to 31 letters, digits, - or _");
  Result<Options> options = parse_options(specification);
  if (!options) return options.error();
  const os::SignalsBlocked blocked; // a handler may fork
  const os::LockGuard guard(making);
  Result<unsigned> slot = free_slot(name);
  if (!slot) return slot.error();
  TierHeap& tier = tiers[*slot];
  TierOpening opening(*slot);
  std::strcpy(tier.name, name);
  if (configured.load()) // configure_all() resolves those of all tiers when all are there
    if (Status s = resolve_spill(tier, *options); !s) return s.error();
  if (Status s = opening.open(*options); !s) return s.error();
  opening.keep();
  return static_cast<int>(*slot);
}

} // namespace nearfar::alloc
