// The part of hmalloc_memkind.h that is in the library.
#include <nearfar/hmalloc_memkind.h>

#include <cinttypes>
#include <cstring>

#include "alloc/diagnostics.hpp"
#include "os/address_space.hpp"
#include "os/file.hpp"
#include "tier/mapping.hpp"

using namespace nearfar;

namespace {

/// The tier of the kinds in a directory, created at the first call: its name has the directory's
/// device and inode. A memkind error if there is none.
int tier_of_directory(const char* directory, hm_tier& tier) {
  os::FileIdentity identity;
  if (os::identify(directory, identity) != 0) return MEMKIND_ERROR_INVALID;
  char name[32];
  std::snprintf(name, sizeof name, "pmem-%" PRIx32 "-%" PRIx64,
                static_cast<std::uint32_t>(identity.device), identity.inode);
  char specification[600];
  const int length = std::snprintf(specification, sizeof specification, "file:%s", directory);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof specification)
    return MEMKIND_ERROR_INVALID;
  tier = hm_tier_find(name);
  if (tier < 0) tier = hm_tier_create(name, specification);
  if (tier < 0 && errno == EEXIST) tier = hm_tier_find(name); // of another thread
  if (tier >= 0) return MEMKIND_SUCCESS;
  const bool all_exist = errno == ENOSPC && std::strstr(hm_error(), "all 8 tiers") != nullptr;
  return all_exist ? MEMKIND_ERROR_TOOMANY : MEMKIND_ERROR_INVALID;
}

} // namespace

extern "C" int hm_memkind_create_pmem(const char* directory, std::size_t bytes,
                                      hm_heap** heap) noexcept {
  hm_tier tier = -1;
  if (const int err = tier_of_directory(directory, tier); err != MEMKIND_SUCCESS) return err;
  *heap = hm_heap_create(tier, bytes);
  return *heap != nullptr ? MEMKIND_SUCCESS : MEMKIND_ERROR_TOOMANY;
}

extern "C" int hm_memkind_check_dax(const char* directory) noexcept {
  char specification[600];
  const int length = std::snprintf(specification, sizeof specification, "fsdax:%s", directory);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof specification) return ENAMETOOLONG;
  Result<tier::Spec> spec = tier::parse(specification);
  if (!spec) return alloc::errno_of(spec.error());
  Result<os::File> file = tier::open_backing(*spec);
  if (!file) return alloc::errno_of(file.error());
  if (const int code = os::set_file_size(file->fd(), os::page_bytes); code != 0) return code;
  std::byte* place = os::reserve_space_at(os::page_bytes, os::page_bytes);
  if (place == nullptr) return ENOMEM;
  const int code = os::map_file_at(place, os::page_bytes, file->fd(), 0, true, os::Place::replace);
  os::unmap(place, os::page_bytes);
  return code;
}
