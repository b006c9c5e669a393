// A descriptor that a library keeps open in a program that does not know of it.
//
// Programs close descriptors that they did not open (closefrom(), loops over 3 to 255, shells with
// `exec 3>&-`) and the kernel then gives the number to their next file. So the descriptor has a
// number above those that programs use, and its device and inode are compared before each use. While
// a mapping keeps the file alive, its inode number is not reused.
//
// Thread safety  get() by any thread, but not during adopt(), reopen() or close().
// Freestanding   no exceptions, no C++ runtime; nothing allocates.
#pragma once

#include <sys/types.h>

#include "os/file.hpp"

namespace nearfar::os {

/// Moves the file to a high descriptor (close-on-exec); returns it unchanged if none is free.
File move_to_high_descriptor(File file);

/// Trivial to copy and to destroy, so that it can be part of a static object: close() is explicit.
class LibraryDescriptor {
public:
  /// Keeps `file` open under a high number. At most once before close().
  void adopt(File file);
  /// The descriptor, or -1 where there is none or the program has closed it.
  int get() const;
  /// Opens the file by its path again, after the program has closed it; not if it is another file.
  void reopen(const char* path, int flags);
  /// Closes the descriptor unless the program did.
  void close();

private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

} // namespace nearfar::os
