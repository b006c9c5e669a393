// Files that this process maps shared may be made private: what a library stores into an image is
// then thrown away with its mapping, by the kernel, page by page, and the file needs no restoring.
#pragma once

namespace nearfar::crash {

/// From now on, in this process, for every mmap() that comes through the dynamic linker.
void make_mappings_private();

} // namespace nearfar::crash
