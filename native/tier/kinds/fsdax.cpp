// fsdax:PATH: a file on a DAX file system, flushed from user space.
#include "tier/kinds.hpp"

namespace nearfar::tier {

const TierKind fsdax_kind = {.name = "fsdax",
                             .form = "fsdax:PATH",
                             .maps = Maps::file,
                             .persists = Persists::by_flush,
                             .read = read_path,
                             .capacity = free_space,
                             .open = create_unnamed};

} // namespace nearfar::tier
