#include "alloc/site_frame.hpp"

#include <cstring>

#include "os/objects.hpp"

namespace nearfar::alloc {

bool is_named(const os::Object& object, const ObjectName& name) {
  if (name.build_id_bytes > 0)
    return object.build_id_bytes >= name.build_id_bytes &&
           std::memcmp(object.build_id, name.build_id, name.build_id_bytes) == 0;
  return std::strcmp(name.name, object.name) == 0;
}

} // namespace nearfar::alloc
