// Tiers as Python writes them; the figures of paced ones come from Python, which owns the profiles.
#include <array>

#include <nanobind/stl/array.h>

#include "bind/convert.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

PyObject* pace_source = nullptr; // lives as long as the module does

tier::Pace pace_of(const char* profile) {
  if (pace_source == nullptr)
    raise(Error::make(Errc::unsupported, "the pace of %s is unknown here", profile)
              .try_next("import nearfar.measure, which reads profiles, before any tier is parsed"));
  const auto figures =
      nb::cast<std::array<double, 5>>(nb::handle(pace_source)(profile)); // its errors pass through
  return {figures[0], figures[1], figures[2], figures[3], figures[4]};
}

} // namespace

tier::Spec parse_tier(const char* text) {
  Result<tier::Spec> spec = tier::parse(text);
  if (!spec) raise(spec.error());
  if (spec->paced()) spec->pace = pace_of(spec->profile);
  return *spec;
}

void register_pace(nb::module_& module) {
  module.def(
      "set_pace_source",
      [](nb::callable source) {
        PyObject* before = pace_source;
        pace_source = source.release().ptr();
        Py_XDECREF(before);
      },
      nb::arg("source"));
}

} // namespace nearfar::bind
