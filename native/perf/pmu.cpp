#include "perf/pmu.hpp"

#include <charconv>

#include "os/process.hpp"

namespace nearfar::perf {

namespace {

std::optional<std::string> read_line(const std::string& path) {
  char text[256];
  if (!os::read_text(path.c_str(), text, sizeof text)) return std::nullopt;
  std::string line(text);
  line.resize(line.find_last_not_of(" \n") + 1);
  return line;
}

/// Decimal, or hexadecimal after 0x; empty if there is more or less than a number.
std::optional<std::uint64_t> number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// Takes the part before the first `separator` off the front of `text`.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view taken = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return taken;
}

std::uint64_t mask_of(std::uint64_t bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; }

/// Puts the low bits of `value` into the ranges of a format, such as "0-7,32"; false if malformed.
bool set_ranges(std::string_view ranges, std::uint64_t value, std::uint64_t& config) {
  while (!ranges.empty()) {
    std::string_view range = take(ranges, ',');
    const auto first = number(take(range, '-'));
    const auto last = range.empty() ? first : number(range);
    if (!first || !last || *last < *first || *last > 63) return false;
    const std::uint64_t mask = mask_of(*last - *first + 1);
    config = (config & ~(mask << *first)) | (value & mask) << *first;
    value = *last - *first == 63 ? 0 : value >> (*last - *first + 1);
  }
  return value == 0;
}

bool set_field(std::string_view format, std::uint64_t value, perf_event_attr& attr) {
  const std::string_view field = take(format, ':');
  std::uint64_t config = field == "config"    ? attr.config
                         : field == "config1" ? attr.config1
                                              : attr.config2;
  if (format.empty() || !set_ranges(format, value, config)) return false;
  if (field == "config")
    attr.config = config;
  else if (field == "config1")
    attr.config1 = config;
  else if (field == "config2")
    attr.config2 = config;
  else
    return false;
  return true;
}

} // namespace

std::optional<Pmu> Pmu::find(const char* devices, const char* name) {
  Pmu pmu;
  pmu.name_ = name;
  pmu.folder_ = std::string(devices) + "/" + name;
  const auto line = read_line(pmu.folder_ + "/type");
  const auto type = line ? number(*line) : std::nullopt;
  if (!type || *type > UINT32_MAX) return std::nullopt;
  pmu.type_ = static_cast<std::uint32_t>(*type);
  return pmu;
}

std::optional<std::string> Pmu::text(const char* folder, std::string_view name) const {
  return read_line(folder_ + "/" + folder + "/" + std::string(name));
}

bool Pmu::has_format(const char* term) const { return text("format", term).has_value(); }

std::optional<std::string> Pmu::event(const char* event) const { return text("events", event); }

std::optional<std::uint64_t> Pmu::capability(const char* name) const {
  const auto line = text("caps", name);
  return line ? number(*line) : std::nullopt;
}

Status Pmu::encode(std::string_view terms, perf_event_attr& attr) const {
  attr.size = sizeof attr;
  attr.type = type_;
  while (!terms.empty())
    if (Status done = encode_term(take(terms, ','), attr); !done) return done;
  return Done{};
}

Status Pmu::encode_term(std::string_view term, perf_event_attr& attr) const {
  std::string_view rest = term;
  const std::string name(take(rest, '='));
  const auto value = rest.empty() ? std::uint64_t{1} : number(rest);
  const auto format = text("format", name);
  if (!format)
    return Error::make(Errc::unsupported, "the PMU %s has no term %s", name_.c_str(), name.c_str());
  if (!value || !set_field(*format, *value, attr))
    return Error::make(Errc::bad_input, "the PMU %s cannot encode %.*s as %s", name_.c_str(),
                       static_cast<int>(term.size()), term.data(), format->c_str());
  return Done{};
}

} // namespace nearfar::perf
