// Common functions of the bindings of traces.
#pragma once

#include <nanobind/nanobind.h>

#include "trace/reader.hpp"
#include "trace/thinned_trace.hpp"

namespace nearfar::bind {

/// Header, counts and sites of a trace that was read to its end. Needs the GIL.
nanobind::dict trace_stats_dict(const trace::TraceReader& reader,
                                const trace::RecordCounts& counts);

/// First touches by site, of small and of large pages, and the most pages of no allocation.
nanobind::dict touched_dict(const trace::FirstTouches& touched);

} // namespace nearfar::bind
