#include "sample/code_locations.hpp"

#include <algorithm>

#include "os/processes.hpp"

namespace nearfar::sample {

namespace {

CodeLocation number_of_region(const std::optional<FilePlace>& place, std::uint64_t pointer,
                              const std::optional<StalledAccess>& access) {
  CodeLocation made;
  made.file = place ? place->file : 0;
  made.offset = place ? place->offset : pointer;
  if (!access) return made;
  made.access = static_cast<std::int32_t>(access->instruction);
  made.bytes = access->bytes;
  made.is_load = access->is_load;
  made.is_store = access->is_store;
  made.is_string = access->is_string;
  made.follows_pointer = access->follows_pointer;
  return made;
}

} // namespace

std::uint32_t CodeLocations::number_of(pid_t process, std::uint64_t pointer) {
  constexpr unsigned pointer_bits = 47;
  const std::optional<FilePlace> place = processes_.place(process, pointer);
  const std::uint64_t key = place ? place->offset | std::uint64_t{place->file} << 40
                                  : pointer | std::uint64_t{1} << 63 |
                                        static_cast<std::uint64_t>(process) << pointer_bits;
  const auto [known, is_new] =
      numbers_.try_emplace(key, static_cast<std::uint32_t>(locations_.size()));
  if (!is_new) return known->second;
  const Decoded decoded = decode(process, pointer);
  accesses_.push_back(decoded.access);
  locations_.push_back(number_of_region(place, pointer, decoded.access));
  locations_.back().is_readable = decoded.is_readable;
  return known->second;
}

CodeLocations::Decoded CodeLocations::decode(pid_t process, std::uint64_t pointer) const {
  std::uint8_t code[code_before + code_after];
  std::uint64_t from = pointer - std::min<std::uint64_t>(pointer, code_before);
  std::uint64_t end = pointer + code_after;
  const MappedRange* range = processes_.find(process, pointer);
  std::size_t size = 0;
  if (range != nullptr) {
    from = std::max(from, range->begin);
    end = std::min(end, range->end);
    size = processes_.read_code(*range, from, code, end - from);
  }
  if (size == 0 && source_ == CodeSource::running_process)
    size = os::read_memory_of(process, from, code, end - from);
  if (pointer - from >= size) return {};
  return {stalled_access({code, size}, pointer - from), true};
}

} // namespace nearfar::sample
