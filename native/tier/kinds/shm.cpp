// shm:[DIR]: a file in memory, which emulates persistent memory.
#include <algorithm>

#include "tier/kinds.hpp"

namespace nearfar::tier {

namespace {

Status read_directory(std::string_view argument, Spec& spec) {
  return read_path(argument.empty() ? "/dev/shm" : argument, spec);
}

/// A tmpfs may be larger than the available memory; using that much would end the process.
Result<std::size_t> free_memory(const Spec& spec) {
  if (Status place = os::check_memory_directory(spec.path); !place) return place.error();
  Result<std::size_t> room = os::free_space(spec.path);
  if (!room) return room.error();
  return std::min(*room, os::available_memory_bytes());
}

} // namespace

const TierKind shm_kind = {.name = "shm",
                           .form = "shm:DIR",
                           .maps = Maps::file,
                           .persists = Persists::emulated,
                           .prefaults = true,
                           .read = read_directory,
                           .capacity = free_memory,
                           .open = create_unnamed};

} // namespace nearfar::tier
