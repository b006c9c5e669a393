#include "perf/features.hpp"

#include <algorithm>

namespace nearfar::perf {

namespace {

constexpr std::size_t build_id_bytes = 20;
/// In perf_event_header::misc of a build id: the byte after the id is its length.
constexpr std::uint16_t build_id_has_length = 1u << 15;

Error malformed(const char* feature) {
  return Error::make(Errc::bad_input, "the section of %s is malformed", feature);
}

/// A length, then a text that ends at its first NUL.
std::string read_text(Fields& in) {
  const std::uint32_t length = in.u32();
  return std::string(Fields(in.take(length)).text());
}

/// Names are given in the order of the attributes.
Status read_event_names(ByteSpan bytes, std::vector<FileEvent>& events) {
  Fields in(bytes);
  const std::uint32_t count = in.u32();
  const std::uint32_t attr_size = in.u32();
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    in.skip(attr_size);
    const std::uint32_t ids = in.u32();
    names.push_back(read_text(in));
    in.skip_array(ids, sizeof(std::uint64_t));
  }
  if (!in.ok()) return malformed("event names");
  for (std::size_t i = 0; i < events.size() && names.size() == events.size(); ++i)
    events[i].name = names[i];
  return Done{};
}

Status read_pmus(ByteSpan bytes, FileFacts& facts) {
  Fields in(bytes);
  const std::uint32_t count = in.u32();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const std::uint32_t type = in.u32();
    facts.pmus[type] = read_text(in);
  }
  if (!in.ok()) return malformed("PMU types");
  return Done{};
}

Status read_build_ids(ByteSpan bytes, FileFacts& facts) {
  Fields in(bytes);
  while (in.ok() && !in.rest().empty()) {
    const auto header = in.read<perf_event_header>();
    if (header.size < sizeof header) return malformed("build ids");
    if (Status read = read_build_id(header.misc, in.take(header.size - sizeof header), facts);
        !read)
      return read;
  }
  if (!in.ok()) return malformed("build ids");
  return Done{};
}

} // namespace

perf_event_attr read_attr(ByteSpan bytes) {
  perf_event_attr attr{};
  std::memcpy(&attr, bytes.data(), std::min(bytes.size(), sizeof attr));
  return attr;
}

bool is_read(Feature feature) {
  return feature == Feature::event_description || feature == Feature::pmu_mappings ||
         feature == Feature::build_id || feature == Feature::cpu_description;
}

Status read_feature(Feature feature, ByteSpan bytes, std::vector<FileEvent>& events,
                    FileFacts& facts) {
  switch (feature) {
  case Feature::event_description: return read_event_names(bytes, events);
  case Feature::pmu_mappings: return read_pmus(bytes, facts);
  case Feature::build_id: return read_build_ids(bytes, facts);
  case Feature::cpu_description: {
    Fields in(bytes);
    facts.cpu = read_text(in); // empty where perf found no description
    return Done{};
  }
  default: return Done{};
  }
}

Status read_build_id(std::uint16_t misc, ByteSpan body, FileFacts& facts) {
  Fields in(body);
  FileBuildId found;
  found.pid = in.u32();
  const ByteSpan id = in.take(build_id_bytes);
  std::size_t length = in.read<std::uint8_t>();
  in.skip(3);
  if ((misc & build_id_has_length) == 0 || length > id.size()) length = id.size();
  found.bytes.assign(id.begin(), id.begin() + static_cast<std::ptrdiff_t>(in.ok() ? length : 0));
  found.file = in.text();
  if (!in.ok()) return malformed("build ids");
  facts.build_ids.push_back(std::move(found));
  return Done{};
}

} // namespace nearfar::perf
