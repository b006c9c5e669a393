// From errors returned by value to Python exceptions; used by every file of this folder.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

#include "base/result.hpp"
#include "kernels/team.hpp"
#include "probe/bandwidth.hpp"
#include "tier/spec.hpp"

namespace nearfar::bind {

/// Makes nearfar._native.NativeError known to the module.
void register_errors(nanobind::module_& module);

/// Raises NativeError(code name, what, next step, errno), or what Python has raised already. Needs
/// the GIL.
[[noreturn]] void raise(const Error& error);

/// Runs `call()` without the GIL, then yields its value or raises its error.
template <class Call>
auto run_unlocked(const Call& call) {
  auto result = [&] {
    nanobind::gil_scoped_release unlocked;
    return call();
  }();
  if (!result) raise(result.error());
  return std::move(*result);
}

/// Parses a tier or raises; the pace of a paced one comes from the source that Python set. Needs
/// the GIL.
tier::Spec parse_tier(const char* text);

/// Adds set_pace_source() to the module.
void register_pace(nanobind::module_& module);

/// {wall_ns, cpu_ns, minor_faults, major_faults, involuntary_switches}
nanobind::dict usage_dict(const os::Usage& usage);

/// {seconds, counted_bytes, members}
nanobind::dict array_dict(const probe::ArrayRepeat& repeat);

/// [{start_ns, end_ns, ...usage}], one for each thread
nanobind::list members_list(const std::vector<kernels::Member>& members);

/// The value whose name stands at its place in `names`; ValueError for any other name.
template <class Enum, std::size_t count>
Enum by_name(std::string_view wanted, const std::string_view (&names)[count]) {
  for (std::size_t i = 0; i < count; ++i)
    if (names[i] == wanted) return static_cast<Enum>(i);
  throw nanobind::value_error("unknown name");
}

// One function for each layer, each in the file of its name.
void register_os(nanobind::module_& module);
void register_pages(nanobind::module_& module);
void register_tier(nanobind::module_& module);
void register_topo(nanobind::module_& module);
void register_probe(nanobind::module_& module);
void register_cache(nanobind::module_& module);
void register_perf(nanobind::module_& module);
void register_inspect(nanobind::module_& module);
void register_trace(nanobind::module_& module);
void register_sample(nanobind::module_& module);
void register_sim(nanobind::module_& module);
void register_interleave(nanobind::module_& module);
void register_stalls(nanobind::module_& module);
void register_bench(nanobind::module_& module);
void register_together(nanobind::module_& module);
// Where libpmemobj is installed:
void register_structures(nanobind::module_& module);
void register_map(nanobind::module_& module);
void register_intset(nanobind::module_& module);

} // namespace nearfar::bind
