// Address space: anonymous and file-backed mappings, their pages, and their nodes.
//
// Thread safety  functions on different ranges may run at once.
// Freestanding   no exceptions, no std::string.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"

namespace nearfar::os {

/// Pages asked of the kernel. `system` leaves the choice to it.
enum class PageSize : unsigned char { system, small_4k, transparent_huge, huge_2m, huge_1g };

const char* page_size_name(PageSize pages);

/// A mapped range that unmaps itself. It lies between two inaccessible guard pages, so that the
/// kernel does not merge it with a neighbor, and /proc/self/smaps has an entry of its own for it.
class MappedRange {
public:
  MappedRange() = default;
  MappedRange(MappedRange&& other) noexcept;
  MappedRange& operator=(MappedRange&& other) noexcept;
  ~MappedRange();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

private:
  friend Result<MappedRange> map_range(std::size_t, PageSize, int, bool, std::size_t);
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::byte* reserved_ = nullptr;
  std::size_t reserved_bytes_ = 0;
};

/// Maps `bytes` (rounded up to the page), anonymous where `fd` < 0, shared from the file's `offset`
/// otherwise; `sync` asks for MAP_SYNC. Pages are not touched. Errors: no_space, unsupported (huge
/// pages not reserved, MAP_SYNC on a file that is not DAX), no_permission. Small pages are at a
/// random distance from their neighbors: at some addresses, lines of few pages miss the first cache
/// (seen on AMD EPYC: 2.7 in place of 0.9 ns), and a later range must not get the same address.
Result<MappedRange> map_range(std::size_t bytes, PageSize pages, int fd, bool sync,
                              std::size_t offset = 0);

/// Binds a range that is not touched yet to one NUMA node (MPOL_BIND).
Status bind_to_node(const MappedRange& range, int node);

/// Writes one byte to each page, so that no fault falls into a measurement.
void prefault(const MappedRange& range);

/// The same for memory whose contents are kept, including mappings of other code.
void touch(std::byte* data, std::size_t bytes);

/// Pages that the kernel allocated: bytes of the range that are resident, and those of them on huge
/// pages (transparent or reserved). Read from /proc/self/smaps.
struct Residency {
  std::size_t resident_bytes = 0;
  std::size_t huge_bytes = 0;
  std::size_t kernel_page_bytes = 0;
};
Result<Residency> residency(const MappedRange& range);

/// MemAvailable of /proc/meminfo, further limited by the memory cgroup this process is in.
std::size_t available_memory_bytes();

/// Asks for the write-back of a range of a shared file mapping and waits for it.
Status sync_range(const std::byte* data, std::size_t bytes);

} // namespace nearfar::os
