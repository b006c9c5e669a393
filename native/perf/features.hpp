// Features of a perf.data file: its events, and the machine on which it was recorded.
//
// Input          untrusted.
// Thread safety  values, no shared state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "perf/file_format.hpp"
#include "perf/record.hpp"

namespace nearfar::perf {

struct FileEvent {
  perf_event_attr attr{};
  std::vector<std::uint64_t> ids; ///< one for each CPU or thread
  std::string name;               ///< as given to perf; empty if the file has no names
};

struct FileBuildId {
  std::uint32_t pid = 0; ///< UINT32_MAX for files of all processes
  std::vector<std::uint8_t> bytes;
  std::string file;
};

struct FileFacts {
  std::string cpu;                           ///< empty if not recorded
  std::map<std::uint32_t, std::string> pmus; ///< by perf_event_attr::type
  std::vector<FileBuildId> build_ids;
};

/// An attribute of any kernel's size: missing fields are zero, unknown ones are ignored.
perf_event_attr read_attr(ByteSpan bytes);

/// Whether read_feature() uses a feature.
bool is_read(Feature feature);

/// Adds the contents of a feature to `events` and facts; unknown features are ignored. Errors:
/// bad_input (malformed).
Status read_feature(Feature feature, ByteSpan bytes, std::vector<FileEvent>& events,
                    FileFacts& facts);

/// Adds the build id of one file: a record of type FileRecord::build_id without its header.
Status read_build_id(std::uint16_t misc, ByteSpan body, FileFacts& facts);

} // namespace nearfar::perf
