// Programs of a run: the one that each process executes, and the instructions of each.
//
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace nearfar::trace {

/// A program of the run, over all its processes.
struct Program {
  std::string path;
  std::uint64_t instructions = 0;
};

class Programs {
public:
  /// A file was mapped; the first one of a process is its program.
  void mapped(std::uint32_t process, const std::string& path) {
    if (std::string& known = path_of(process); known.empty()) known = path;
  }
  /// A forked child executes the program of its parent.
  void forked(std::uint32_t parent, std::uint32_t child) {
    const std::string path = path_of(parent);
    path_of(child) = path;
  }
  void count(std::uint32_t process, std::uint64_t instructions) {
    const std::string& path = path_of(process);
    const auto known = std::find_if(programs_.begin(), programs_.end(),
                                    [&](const Program& program) { return program.path == path; });
    if (known == programs_.end())
      programs_.push_back({path, instructions});
    else
      known->instructions += instructions;
  }
  /// The counted programs, most instructions first. Call it last.
  std::vector<Program> take() {
    std::sort(programs_.begin(), programs_.end(), [](const Program& a, const Program& b) {
      return a.instructions != b.instructions ? a.instructions > b.instructions : a.path < b.path;
    });
    return std::move(programs_);
  }

private:
  std::string& path_of(std::uint32_t process) {
    if (process >= paths_.size()) paths_.resize(std::size_t{process} + 1);
    return paths_[process];
  }

  std::vector<std::string> paths_; ///< by process, empty where unknown
  std::vector<Program> programs_;
};

} // namespace nearfar::trace
