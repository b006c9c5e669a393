#include "crash/runtime/unseen_mappings.hpp"

#include <cstring>

#include "crash/runtime/memory_map.hpp"
#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

namespace {

bool is_ours(const char* start) {
  for (int i = 0; i < regions.count; ++i) {
    const RecordedRegion& region = regions.region[i];
    if (static_cast<std::size_t>(start - region.start) < region.bytes ||
        static_cast<std::size_t>(start - region.alias) < region.bytes)
      return true;
  }
  return false;
}

/// The C library itself maps a semaphore that has a name.
bool is_semaphore(const char* path) {
  constexpr char folder[] = "/dev/shm/sem.";
  return std::strncmp(path, folder, sizeof folder - 1) == 0;
}

} // namespace

void for_each_unseen_mapping(void (*visit)(const UnseenMapping&)) {
  for_each_mapping([&](const Mapping& one) {
    if (!one.is_writable() || !one.is_shared() || one.path[0] != '/' || is_semaphore(one.path))
      return;
    UnseenMapping found{reinterpret_cast<const char*>(one.start), one.path, {}};
    if (!is_ours(found.start) && stat(found.path, &found.file) == 0 && S_ISREG(found.file.st_mode))
      visit(found);
  });
}

} // namespace nearfar::crash::runtime
