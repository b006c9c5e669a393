// A file that holds an image, mapped: what the explorer puts there, others open.
#pragma once

#include "os/file.hpp"
#include "os/pages.hpp"

namespace nearfar::crash {

struct SharedImage {
  os::File file;
  os::MappedRange range;
};

/// At `path`, which must not exist; in a folder, a file without a name.
inline Result<SharedImage> share(const char* path, std::size_t bytes) {
  Result<os::File> file = os::is_directory(path) ? os::create_unnamed(path) : os::create_new(path);
  if (!file) return file.error();
  if (Status sized = os::reserve_space(*file, bytes); !sized) return sized.error();
  Result<os::MappedRange> range = os::map_range(bytes, os::PageSize::small_4k, file->fd(), false);
  if (!range) return range.error();
  return SharedImage{std::move(*file), std::move(*range)};
}

} // namespace nearfar::crash
