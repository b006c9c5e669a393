// The parts of a perf.data file, after tools/perf/Documentation/perf.data-file-format.txt of Linux.
#pragma once

#include <cstdint>

namespace nearfar::perf {

/// "PERFILE2" in the byte order of the machine that recorded.
inline constexpr char file_magic[9] = "PERFILE2";
inline constexpr char swapped_magic[9] = "2ELIFREP";

struct FileSection {
  std::uint64_t offset;
  std::uint64_t size;
};

/// A pipe's header ends after `size`; attributes and features come as records.
struct PipeHeader {
  char magic[8];
  std::uint64_t size;
};

struct FileHeader {
  PipeHeader start;
  std::uint64_t attr_size; ///< of an attribute with the section of its ids
  FileSection attrs;
  FileSection data; ///< size 0 if the recorder was killed
  FileSection event_types;
  std::uint64_t features[4]; ///< bits: which sections follow the data
};
static_assert(sizeof(PipeHeader) == 16 && sizeof(FileHeader) == 104);

/// Bits of FileHeader::features that are read.
enum class Feature : std::uint64_t {
  build_id = 2,
  cpu_description = 8,
  event_description = 12,
  pmu_mappings = 16,
  directory = 24, ///< the records are in other files of the folder
};

/// Types of the records that perf adds.
enum class FileRecord : std::uint32_t {
  attribute = 64,
  tracing_data = 66,
  build_id = 67,
  finished_round = 68,
  aux_trace = 71,
  feature = 80,
  compressed = 81,
  padded_compressed = 83, ///< since Linux 6.16
};

} // namespace nearfar::perf
