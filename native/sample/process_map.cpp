#include "sample/process_map.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

#include "os/file.hpp"

namespace nearfar::sample {

ProcessMap::ProcessMap() : files_(1), names_(1) {}

void ProcessMap::add(pid_t process, const MappedRange& range) {
  Process& its = processes_[process];
  add_static_data(its, range);
  its.has_anonymous |= range.file == 0 && range.name == 0;
  std::map<std::uint64_t, MappedRange>& ranges = its.ranges;
  auto at = ranges.upper_bound(range.begin);
  if (at != ranges.begin() && std::prev(at)->second.end > range.begin) --at;
  while (at != ranges.end() && at->second.begin < range.end) {
    const MappedRange old = at->second;
    at = ranges.erase(at);
    if (old.begin < range.begin) {
      MappedRange left = old;
      left.end = range.begin;
      ranges[left.begin] = left;
    }
    if (old.end > range.end) {
      MappedRange right = old;
      right.offset += range.end - old.begin;
      right.begin = range.end;
      at = std::next(ranges.insert_or_assign(right.begin, right).first);
    }
  }
  ranges[range.begin] = range;
}

void ProcessMap::fork(pid_t parent, pid_t child) {
  if (parent == child) return; // a thread
  const auto found = processes_.find(parent);
  if (found != processes_.end()) processes_[child] = Process(found->second);
}

void ProcessMap::start_program(pid_t process) { processes_.erase(process); }

bool ProcessMap::read(pid_t process) {
  char name[64];
  std::snprintf(name, sizeof name, "/proc/%d/maps", process);
  std::FILE* maps = std::fopen(name, "re");
  if (maps == nullptr) return false;
  char line[4352];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    MappedRange range;
    char access[5] = "";
    int path = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &range.begin,
                    &range.end, access, &range.offset, &path) < 4)
      continue;
    std::string file = line + path;
    while (!file.empty() && file.back() == '\n')
      file.pop_back();
    name_range(range, file);
    range.is_code = access[2] == 'x';
    add(process, range);
  }
  std::fclose(maps);
  return true;
}

void ProcessMap::name_range(MappedRange& range, const std::string& name) {
  const bool is_path = name.starts_with('/') && !name.starts_with("//"); // "//anon" of perf
  range.file = is_path ? file_number(name) : 0;
  range.name = name.starts_with('[') ? name_number(name) : 0;
}

std::uint32_t ProcessMap::name_number(const std::string& name) {
  const auto known = std::ranges::find(names_, name);
  if (known == names_.end())
    return names_.push_back(name), static_cast<std::uint32_t>(names_.size() - 1);
  return static_cast<std::uint32_t>(known - names_.begin());
}

std::uint32_t ProcessMap::file_number(const std::string& path) {
  const auto [known, is_new] =
      numbers_.try_emplace(path, static_cast<std::uint32_t>(files_.size()));
  if (!is_new) return known->second;
  MappedFile& file = files_.emplace_back(MappedFile{path, trace::read_elf(path.c_str())});
  const auto expected = build_ids_.find(path);
  if (expected != build_ids_.end() && file.elf && file.elf->build_id != expected->second) {
    file.is_other = true;
    file.elf.reset();
  }
  return known->second;
}

void ProcessMap::expect_build_id(const std::string& path, std::span<const std::uint8_t> build_id) {
  if (build_id.empty()) return;
  constexpr char digits[] = "0123456789abcdef";
  std::string& text = build_ids_[path];
  text.clear();
  for (const std::uint8_t byte : build_id) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
}

const MappedRange* ProcessMap::find(pid_t process, std::uint64_t address) const {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return nullptr;
  auto at = found->second.ranges.upper_bound(address);
  if (at == found->second.ranges.begin()) return nullptr;
  --at;
  return address < at->second.end ? &at->second : nullptr;
}

std::vector<ProcessRegion> ProcessMap::regions() const {
  std::vector<ProcessRegion> found;
  for (const auto& [process, its] : processes_)
    for (const auto& [begin, range] : its.ranges)
      add_regions(process, range, found);
  return found;
}

/// Adds the pieces of a range, each of which is static data of one file or none.
void ProcessMap::add_regions(pid_t process, const MappedRange& range,
                             std::vector<ProcessRegion>& regions) const {
  const std::string& name = range.file != 0 ? files_[range.file].path : names_[range.name];
  const std::map<std::uint64_t, StaticData>& statics = processes_.at(process).statics;
  const auto join = [&](const ProcessRegion& piece) {
    ProcessRegion* last = regions.empty() ? nullptr : &regions.back();
    const bool joins = last != nullptr && last->process == process && last->end == piece.begin &&
                       last->name == piece.name && last->is_statics == piece.is_statics;
    if (joins)
      last->end = piece.end;
    else
      regions.push_back(piece);
  };
  for (std::uint64_t at = range.begin; at < range.end;) {
    if (const auto data = static_data(process, at)) {
      const std::uint64_t end = std::min(data->end, range.end);
      join({process, at, end, files_[data->file].path, true});
      at = end;
      continue;
    }
    const auto next = statics.upper_bound(at);
    const std::uint64_t end =
        next == statics.end() ? range.end : std::min(range.end, next->second.begin);
    if (!files_[range.file].elf) join({process, at, end, name});
    at = end;
  }
}

void ProcessMap::add_static_data(Process& process, const MappedRange& range) const {
  if (range.file >= files_.size()) return;
  const std::optional<trace::Elf>& elf = files_[range.file].elf;
  const auto bias = elf ? elf->bias(range.begin, range.offset) : std::nullopt;
  const auto data = bias ? elf->writable() : std::nullopt;
  if (!data) return;
  const std::uint64_t begin = data->begin + *bias;
  process.statics[begin] = {range.file, begin, data->end + *bias};
}

std::optional<StaticData> ProcessMap::static_data(pid_t process, std::uint64_t address) const {
  const MappedRange* range = find(process, address);
  if (range == nullptr || range->name != 0) return std::nullopt;
  const std::map<std::uint64_t, StaticData>& statics = processes_.at(process).statics;
  auto at = statics.upper_bound(address);
  if (at == statics.begin()) return std::nullopt;
  const StaticData& data = (--at)->second;
  // Zeroed data is anonymous memory behind the file's mappings.
  const bool is_its = range->file == 0 || range->file == data.file;
  return is_its && address < data.end ? std::optional(data) : std::nullopt;
}

bool ProcessMap::may_be_data(pid_t process, std::uint64_t address) const {
  const auto found = processes_.find(process);
  const bool is_known = found != processes_.end() && found->second.has_anonymous;
  return !is_known || find(process, address) != nullptr;
}

std::optional<FilePlace> ProcessMap::place(pid_t process, std::uint64_t address) const {
  const MappedRange* range = find(process, address);
  if (range == nullptr || range->file == 0) return std::nullopt;
  const std::optional<trace::Elf>& elf = files_[range->file].elf;
  const auto bias = elf ? elf->bias(range->begin, range->offset) : std::nullopt;
  return FilePlace{range->file, bias ? address - *bias : address - range->begin + range->offset};
}

std::size_t ProcessMap::read_code(const MappedRange& range, std::uint64_t address, void* to,
                                  std::size_t bytes) const {
  if (range.file == 0 || files_[range.file].is_other) return 0;
  const os::File file(open(files_[range.file].path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) return 0;
  const ssize_t got =
      pread(file.fd(), to, bytes, static_cast<off_t>(address - range.begin + range.offset));
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

} // namespace nearfar::sample
