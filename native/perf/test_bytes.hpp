// Records and files made by hand, field by field.
#pragma once

#include <cstdint>
#include <cstring>
#include <linux/perf_event.h>
#include <string_view>
#include <utility>
#include <vector>

#include "perf/file_format.hpp"

namespace nearfar::perf {

struct Bytes : std::vector<std::uint8_t> {
  template <class T>
  Bytes& put(T value) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(&value);
    insert(end(), first, first + sizeof value);
    return *this;
  }
  Bytes& u64(std::uint64_t value) { return put(value); }
  Bytes& u32(std::uint32_t value) { return put(value); }
  /// The text, a NUL, and zeros up to a multiple of 8 bytes, as the kernel pads names.
  Bytes& name(std::string_view text) {
    insert(end(), text.begin(), text.end());
    do
      push_back(0);
    while (size() % 8 != 0);
    return *this;
  }
  Bytes& append(const std::vector<std::uint8_t>& other) {
    insert(end(), other.begin(), other.end());
    return *this;
  }
};

inline Bytes record(std::uint32_t type, std::uint16_t misc, const Bytes& body) {
  Bytes made;
  made.put(perf_event_header{type, misc, static_cast<std::uint16_t>(8 + body.size())});
  return made.append(body);
}

/// Parts of a file; see file_of().
struct FileParts {
  std::vector<std::pair<perf_event_attr, std::vector<std::uint64_t>>> events;
  Bytes records;
  std::vector<std::pair<Feature, Bytes>> features; ///< in the order of their bits
};

/// Header, ids, attributes, records, features, as perf writes them.
inline Bytes file_of(const FileParts& parts) {
  constexpr std::uint64_t attr_bytes = sizeof(perf_event_attr) + sizeof(FileSection);
  FileHeader header{};
  std::memcpy(header.start.magic, file_magic, sizeof header.start.magic);
  header.start.size = sizeof header;
  header.attr_size = attr_bytes;
  Bytes ids;
  Bytes attrs;
  for (const auto& [attr, event_ids] : parts.events) {
    attrs.put(attr).put(FileSection{sizeof header + ids.size(), 8 * event_ids.size()});
    for (const std::uint64_t id : event_ids)
      ids.u64(id);
  }
  header.attrs = {sizeof header + ids.size(), attrs.size()};
  header.data = {header.attrs.offset + attrs.size(), parts.records.size()};
  Bytes sections;
  Bytes contents;
  const std::uint64_t first = header.data.offset + header.data.size + 16 * parts.features.size();
  for (const auto& [feature, bytes] : parts.features) {
    const auto bit = static_cast<std::uint64_t>(feature);
    header.features[bit / 64] |= std::uint64_t{1} << bit % 64;
    sections.put(FileSection{first + contents.size(), bytes.size()});
    contents.append(bytes);
  }
  Bytes file;
  file.put(header).append(ids).append(attrs).append(parts.records);
  return Bytes(file.append(sections).append(contents));
}

/// The output of perf to a pipe, from the records on.
inline Bytes pipe_of(const Bytes& records) {
  PipeHeader header{};
  std::memcpy(header.magic, file_magic, sizeof header.magic);
  header.size = sizeof header;
  return Bytes(Bytes().put(header).append(records));
}

} // namespace nearfar::perf
