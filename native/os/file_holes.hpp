// Parts of a file that have been written (SEEK_DATA, SEEK_HOLE).
//
// Thread safety  functions on different descriptors may run at once.
#pragma once

#include <cstddef>
#include <functional>

namespace nearfar::os {

/// Calls visit(begin, end) for the parts of a file's first `bytes` that are not holes, upward; for
/// all of it where the file system does not know.
void each_filled_range(int fd, std::size_t bytes,
                       const std::function<void(std::size_t begin, std::size_t end)>& visit);

} // namespace nearfar::os
