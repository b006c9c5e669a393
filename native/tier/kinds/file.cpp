// file:PATH: a file on a disk, mapped.
#include "tier/kinds.hpp"

namespace nearfar::tier {

const TierKind file_kind = {.name = "file",
                            .form = "file:PATH",
                            .maps = Maps::file,
                            .persists = Persists::by_msync,
                            .read = read_path,
                            .capacity = free_space,
                            .open = create_unnamed};

} // namespace nearfar::tier
