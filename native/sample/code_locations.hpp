// The instructions at which samples were taken, each decoded once.
//
// Code           is read from the file that is mapped there; code that is in no file, such as that
//                of a JIT compiler, from the process, while it runs.
// Recorded       code of processes that ran earlier is only in files.
// Thread safety  none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

#include "sample/process_map.hpp"
#include "sample/samples.hpp"
#include "sample/stalled_access.hpp"

namespace nearfar::sample {

enum class CodeSource { running_process, recorded_process };

class CodeLocations {
public:
  CodeLocations(const ProcessMap& processes, CodeSource source)
      : processes_(processes), source_(source) {}

  /// Index of the location at an instruction pointer of a process; decodes a new one.
  std::uint32_t number_of(pid_t process, std::uint64_t pointer);
  /// The access that samples at a location waited for.
  const std::optional<StalledAccess>& access(std::uint32_t number) const {
    return accesses_[number];
  }
  std::span<const CodeLocation> all() const { return locations_; }

private:
  struct Decoded {
    std::optional<StalledAccess> access;
    bool is_readable = false;
  };
  Decoded decode(pid_t process, std::uint64_t pointer) const;

  const ProcessMap& processes_;
  CodeSource source_;
  std::vector<CodeLocation> locations_;
  std::vector<std::optional<StalledAccess>> accesses_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

} // namespace nearfar::sample
