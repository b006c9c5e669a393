// Mappings of each process of a run, from the kernel's records.
//
// Order          mappings, forks and program starts are applied in the order of their times.
// Limits         the kernel does not report unmapping; a mapping lasts until another one replaces
//                it.
// Thread safety  none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

#include "trace/elf.hpp"

namespace nearfar::sample {

/// A file whose code or data is mapped, once for all processes.
struct MappedFile {
  std::string path;
  std::optional<trace::Elf> elf; ///< empty if the file is not ELF, or cannot be read
  bool is_other = false;         ///< it is not the file that was mapped: its build id differs
};

struct MappedRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0; ///< in the file
  std::uint32_t file = 0;   ///< number of the file; 0: anonymous memory
  std::uint32_t name = 0;   ///< number of the kernel's name of anonymous memory; 0: it has none
  bool is_code = false;
};

/// Adjacent mappings of anonymous memory with one name, or of a file that has data. The kernel
/// merges and splits mappings, so that only all of them together have a meaning for the program.
/// Static data of an ELF file is a region of its own, in any number of mappings.
struct ProcessRegion {
  pid_t process = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string name; ///< the kernel's, or the path
  bool is_statics = false;
};

/// Initialized and zeroed data of an ELF file, in whole pages.
struct StaticData {
  std::uint32_t file = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// A place in a file, as addr2line takes it.
struct FilePlace {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
};

class ProcessMap {
public:
  ProcessMap();

  void add(pid_t process, const MappedRange& range);
  void fork(pid_t parent, pid_t child);
  void start_program(pid_t process); ///< exec: all mappings go
  /// Reads the current mappings from /proc/PID/maps. False if that cannot be read.
  bool read(pid_t process);

  /// The build id of the file that was mapped by this path, before a range of it is named.
  void expect_build_id(const std::string& path, std::span<const std::uint8_t> build_id);
  /// Sets file and name of a range, by its name in the kernel: a path, or "[heap]" and the like.
  void name_range(MappedRange& range, const std::string& name);
  std::span<const MappedFile> files() const { return files_; }

  /// The kernel's names of anonymous memory; the first is empty.
  std::span<const std::string> names() const { return names_; }
  /// All data of all processes, without constants in files of code.
  std::vector<ProcessRegion> regions() const;
  /// Static data of the program or a library at an address; empty if there is none.
  std::optional<StaticData> static_data(pid_t process, std::uint64_t address) const;

  /// Whether an address may be data: false if the process's data mappings are known, and none of
  /// them is there.
  bool may_be_data(pid_t process, std::uint64_t address) const;
  const MappedRange* find(pid_t process, std::uint64_t address) const;
  /// The file that is mapped at an address, and the offset there.
  std::optional<FilePlace> place(pid_t process, std::uint64_t address) const;
  /// Bytes of code at an address of a file, from the file. 0 if there are none.
  std::size_t read_code(const MappedRange& range, std::uint64_t address, void* to,
                        std::size_t bytes) const;

private:
  struct Process {
    std::map<std::uint64_t, MappedRange> ranges; ///< by begin, without overlap
    std::map<std::uint64_t, StaticData> statics; ///< of each file that was mapped, by begin
    bool has_anonymous = false;                  ///< records of data mappings were made
  };

  void add_regions(pid_t process, const MappedRange& range,
                   std::vector<ProcessRegion>& regions) const;
  void add_static_data(Process& process, const MappedRange& range) const;
  std::uint32_t file_number(const std::string& path);
  std::uint32_t name_number(const std::string& name);

  std::unordered_map<pid_t, Process> processes_;
  std::vector<MappedFile> files_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::unordered_map<std::string, std::string> build_ids_; ///< that files must have, by path
};

} // namespace nearfar::sample
