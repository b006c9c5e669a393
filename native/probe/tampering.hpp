// For tests only: opens the unnamed file of a tier, to change contents that a probe relies on.
#pragma once

#include <doctest/doctest.h>
#include <filesystem>
#include <string>

#include "os/file.hpp"

namespace nearfar::probe {

/// Opens the unnamed file in `folder` that this process holds once more.
inline os::File reopen_unnamed_in(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone; // the iterator's own descriptor may be closed by now
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.rfind(folder + "/", 0) != 0) continue;
    Result<os::File> file = os::open_existing(entry.path().c_str(), false);
    REQUIRE(bool(file));
    return std::move(*file);
  }
  FAIL("no file in the folder is held");
  return os::File();
}

} // namespace nearfar::probe
