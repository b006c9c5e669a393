#include "bind/convert.hpp"
#include "tier/mapping.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

void register_tier(nb::module_& module) {
  register_pace(module);
  module.def(
      "parse_tier",
      [](const char* text) {
        const tier::Spec spec = parse_tier(text);
        nb::dict d;
        d["kind"] = tier::kind_name(spec.kind);
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
