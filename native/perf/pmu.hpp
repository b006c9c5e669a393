// A performance monitoring unit as sysfs describes it: its type, its named events, and the bits of
// perf_event_attr that each term of an event sets.
//
// Source         Documentation/ABI/testing/sysfs-bus-event_source-devices-{events,format,caps} of
//                Linux.
// Thread safety  values, no shared state.
#pragma once

#include <cstdint>
#include <linux/perf_event.h>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace nearfar::perf {

class Pmu {
public:
  /// `devices` is the folder of all units, /sys/bus/event_source/devices. Empty if none has
  /// this name.
  static std::optional<Pmu> find(const char* devices, const char* name);

  const std::string& name() const { return name_; }
  std::uint32_t type() const { return type_; }
  bool has_format(const char* term) const;
  /// The terms of a named event, such as "event=0xcd,umask=0x1"; empty if it has none.
  std::optional<std::string> event(const char* event) const;
  /// A number in caps/.
  std::optional<std::uint64_t> capability(const char* name) const;

  /// Sets type and configuration of an attribute from terms. Errors: unsupported (this unit has no
  /// such term), bad_input (malformed).
  Status encode(std::string_view terms, perf_event_attr& attr) const;

private:
  std::optional<std::string> text(const char* folder, std::string_view name) const;
  Status encode_term(std::string_view term, perf_event_attr& attr) const;

  std::string folder_;
  std::string name_;
  std::uint32_t type_ = 0;
};

} // namespace nearfar::perf
