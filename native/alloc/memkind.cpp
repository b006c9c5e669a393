// The part of hmalloc_memkind.h that is in the library.
#include <nearfar/hmalloc_memkind.h>

#include "alloc/diagnostics.hpp"
#include "os/address_space.hpp"
#include "os/file.hpp"
#include "tier/mapping.hpp"

using namespace nearfar;

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
