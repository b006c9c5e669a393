#include "bind/convert.hpp"
#include "tier/mapping.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

const char* maps_name(tier::Maps maps) {
  switch (maps) {
  case tier::Maps::memory: return "memory";
  case tier::Maps::file: return "file";
  case tier::Maps::device: return "device";
  }
  return "";
}

const char* persists_name(tier::Persists persists) {
  switch (persists) {
  case tier::Persists::nothing: return "nothing";
  case tier::Persists::emulated: return "emulated";
  case tier::Persists::by_flush: return "flush";
  case tier::Persists::by_msync: return "msync";
  }
  return "";
}

} // namespace

void register_tier(nb::module_& module) {
  register_pace(module);
  module.def(
      "parse_tier",
      [](const char* text) {
        const tier::Spec spec = parse_tier(text);
        nb::dict d;
        d["kind"] = spec.kind->name;
        d["maps"] = maps_name(spec.kind->maps);
        d["persists"] = persists_name(spec.kind->persists);
        d["holds_pools"] = spec.holds_pools();
        d["node"] = spec.node;
        d["path"] = spec.path;
        d["pages"] = os::page_size_name(spec.pages);
        d["populate"] = spec.populate;
        d["profile"] = spec.profile;
        return d;
      },
      nb::arg("text"));
  module.def(
      "tier_capacity_bytes",
      [](const char* text) {
        const tier::Spec spec = parse_tier(text);
        return run_unlocked([&] { return tier::capacity(spec); });
      },
      nb::arg("tier"));
}

} // namespace nearfar::bind
