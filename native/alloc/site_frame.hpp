// Programs, libraries and return addresses as plans name them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::os {
struct Object;
} // namespace nearfar::os

namespace nearfar::alloc {

inline constexpr std::size_t longest_chain = 16; ///< return addresses in a site

/// A program or library in a plan.
struct ObjectName {
  unsigned char build_id[32] = {};
  std::uint8_t build_id_bytes = 0; ///< as many as the plan has; 0: by name
  char name[64] = "";              ///< last component of its path; empty for the program
};

/// Whether a loaded object has this build ID or name.
bool is_named(const os::Object& object, const ObjectName& name);

/// A return address in a plan: an object and the address in its file.
struct SiteFrame {
  ObjectName object;
  std::uint64_t offset = 0;
};

} // namespace nearfar::alloc
