#include "sim/device_file.hpp"

#include <algorithm>
#include <charconv>

#include "os/stream.hpp"

namespace nearfar::sim {

namespace {

constexpr std::string_view first_line = "nearfar-device 1";
/// More than twice the largest device file: with 256 link loads, one has about 600 lines of at most
/// 45 bytes.
constexpr std::size_t max_bytes = 64 << 10;
constexpr const char* how_to_make =
    "write it from a profile: nearfar profile export PROFILE --out FILE";

/// Removes the text up to the first `separator` from `text` and returns it; all text if there is no
/// separator.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

/// Lines of the form "key value".
class DeviceReader {
public:
  explicit DeviceReader(const char* file) : file_(file) {}

  Result<Device> read(std::string_view text) {
    if (take(text, '\n') != first_line)
      return Error::make(Errc::bad_input, "%s is not a device file of version 1", file_)
          .try_next("%s", how_to_make);
    while (!text.empty()) {
      ++line_;
      if (Status read = entry(take(text, '\n')); !read) return read.error();
    }
    if (name_.empty() || kind_.empty()) return damaged("no name or no kind");
    const auto* known =
        std::find(std::begin(memory_kind_names), std::end(memory_kind_names), kind_);
    if (known == std::end(memory_kind_names)) return damaged("the kind is not commands or queued");
    const auto kind = static_cast<MemoryKind>(known - std::begin(memory_kind_names));
    return make_device(name_.c_str(), kind, figures_);
  }

private:
  Status entry(std::string_view line) {
    if (line.empty() || line.front() == '#') return Done{};
    const std::string_view key = take(line, ' ');
    if (key == "name") return assign(name_, line);
    if (key == "kind") return assign(kind_, line);
    for (const auto& [name, value] : figures_)
      if (name == key) return damaged("duplicate figure");
    double value = 0;
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (failed != std::errc() || end != line.data() + line.size()) return damaged("invalid number");
    figures_.emplace_back(key, value);
    return Done{};
  }

  Status assign(std::string& to, std::string_view value) {
    if (!to.empty()) return damaged("duplicate key");
    to = value;
    return Done{};
  }

  Error damaged(const char* why) const {
    return Error::make(Errc::bad_input, "%s is damaged at line %u: %s", file_, line_, why)
        .try_next("%s", how_to_make);
  }

  const char* file_;
  unsigned line_ = 1;
  std::string name_;
  std::string kind_;
  Figures figures_;
};

} // namespace

Result<Device> parse_device(std::string_view text, const char* file) {
  return DeviceReader(file).read(text);
}

Result<Device> read_device(const char* path) {
  Result<os::Stream> stream = os::open_stream(path);
  if (!stream) {
    Error error = stream.error();
    if (error.code == Errc::not_found) error.try_next("%s", how_to_make);
    return error;
  }
  std::string text(max_bytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), stream->get()));
  if (std::ferror(stream->get())) return Error::make(Errc::os_error, "cannot read '%s'", path);
  if (text.size() > max_bytes)
    return Error::make(Errc::bad_input, "%s has more than 64 KiB: not a device file", path)
        .try_next("%s", how_to_make);
  return parse_device(text, path);
}

} // namespace nearfar::sim
