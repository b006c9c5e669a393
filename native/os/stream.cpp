#include "os/stream.hpp"

#include "os/file.hpp"

namespace nearfar::os {

Result<Stream> open_stream(const char* path) {
  Result<File> file = open_readonly(path);
  if (!file) return file.error();
  Stream stream(fdopen(file->fd(), "rb"));
  if (stream == nullptr) return Error::make(Errc::no_space, "no memory to read '%s'", path);
  file->release();
  return stream;
}

} // namespace nearfar::os
