#include "structures/persistence_policy.hpp"

#include <cstring>

namespace nearfar::structures {

Status Dram::allocate(std::uint64_t* link, std::size_t bytes, bool zeroed) {
  if (bytes <= largest_small && node_ == any_node) {
    Small block(static_cast<std::byte*>(
        ::operator new(bytes, std::align_val_t{os::cache_line_bytes}, std::nothrow)));
    if (!block) return Error::make(Errc::no_space, "no memory for %zu bytes", bytes);
    if (zeroed) std::memset(block.get(), 0, bytes);
    const std::lock_guard guard(mutex_);
    small_.push_back(std::move(block));
    store(*link, link_of(small_.back().get()));
    return Done{};
  }
  Result<os::MappedRange> range = os::map_range(bytes, os::PageSize::system, -1, false); // zeros
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
