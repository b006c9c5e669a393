// Stores that libpmemobj and libpmem make on their own: of logs, lanes and the heap.
#pragma once

#include <string_view>

#include "storelog/event.hpp"

namespace nearfar::crash {

/// Whether a store is such a library's. They follow from what the program asked for, so that its
/// own stores are explored and blamed first.
inline bool of_library(const storelog::Site& site) {
  const std::string_view path = site.file();
  return site.is_code() && path.substr(path.rfind('/') + 1).starts_with("libpmem");
}

} // namespace nearfar::crash
