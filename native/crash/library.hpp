// Stores that libpmemobj and libpmem make on their own: of logs, lanes and the heap.
#pragma once

#include <string_view>

#include "storelog/event.hpp"

namespace nearfar::crash {

/// Whether a store is such a library's, or the C library's on its behalf. They follow from what the
/// program asked for, so that its own stores are explored and blamed first.
inline bool of_library(const storelog::Site& site) {
  const std::string_view path = site.file();
  if (site.is_code() && path.substr(path.rfind('/') + 1).starts_with("libpmem")) return true;
  return site.caller() != nullptr && of_library(*site.caller());
}

} // namespace nearfar::crash
