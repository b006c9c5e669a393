#include "structures/medium.hpp"

namespace nearfar::structures {

Status Dram::allocate(std::uint64_t* link, std::size_t bytes, bool) {
  Result<os::Range> range = os::map_range(bytes, os::PageSize::system, -1, false); // zeros
  if (!range) return range.error();
  if (node_ != any_node)
    if (Status bound = os::bind_to_node(*range, node_); !bound) return bound.error();
  const std::lock_guard guard(mutex_);
  ranges_.push_back(std::move(*range));
  store(*link, link_of(ranges_.back().data()));
  return Done{};
}

Error sync_failed() {
  return Error::make(Errc::os_error, "writing the pool back to its file failed, so the last "
                                     "operation may not be durable")
      .try_next("look at the kernel's log for errors of the device, then run nearfar pool check");
}

} // namespace nearfar::structures
