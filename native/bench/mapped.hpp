// A file read and written through a mapping, compared with system calls, after DAXBench64.
//
// Every method moves whole blocks between the file and one private buffer, so that all do the same
// copying and differ only in the calls of the kernel. Writes end with msync (mapped) or fdatasync
// (the others).
//
// Thread safety  one MappedBench a thread; run() works on a thread pinned to its processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "os/file.hpp"
#include "os/pages.hpp"
#include "os/usage.hpp"

namespace nearfar::bench {

enum class Method : unsigned char { mapped, buffered, direct, uring };

/// State of page cache and page tables before the first access.
enum class Warmth : unsigned char {
  cold,     ///< the page cache holds nothing of the file
  warm,     ///< the page cache holds all of it; a mapping is fresh, so each page faults once
  resident, ///< mapped only: the page tables are filled too
};

struct Access {
  Method method = Method::mapped;
  bool write = false;
  bool random = false;
  Warmth warmth = Warmth::warm;
  std::size_t block_bytes = 4096; ///< a multiple of 4096 that divides the file
  std::uint64_t seed = 1;
};

struct IoSample {
  double seconds = 0; ///< durable at its end, where it wrote
  std::size_t bytes = 0;
  os::Usage usage;
};

/// Properties of the mapping that DAXBench64 prints.
struct MappingFacts {
  int descriptor = -1;
  std::uintptr_t first_address = 0;
  std::uintptr_t last_address = 0;
  std::size_t page_bytes = 0; ///< base page of the mapping
  std::size_t huge_bytes = 0; ///< of the mapping, once touched, that lies on huge pages
  bool dax = false;
  bool map_sync = false;
};

/// Requests that io_uring keeps in flight; the other methods have one.
inline constexpr unsigned uring_depth = 32;

class MappedBench {
public:
  /// Makes an unnamed file of `bytes` (a multiple of 1 MiB) in the directory `path` (see
  /// os::create_unnamed) and fills it. Errors: as os::create_unnamed and os::reserve_space;
  /// bad_input for the size.
  static Result<MappedBench> create(const char* path, std::size_t bytes, int cpu);

  Result<MappingFacts> facts();

  /// Moves blocks for `budget_ns` at most, or once through the file, whichever ends first.
  /// Errors: unsupported (O_DIRECT or io_uring is not there), failed_check (blocks read are not
  /// those asked for), os_error, no_space.
  Result<IoSample> run(const Access& access, std::uint64_t budget_ns);

private:
  MappedBench(os::File file, std::size_t bytes, int cpu);

  Result<IoSample> run_mapped(const Access& access, std::uint64_t budget_ns);
  Result<IoSample> run_calls(const Access& access, std::uint64_t budget_ns);
  Result<IoSample> run_uring(const Access& access, std::uint64_t budget_ns);
  Result<os::MappedRange> map_file(bool& sync) const;
  Result<os::File> reopen(bool direct) const;
  Status set_warmth(Warmth warmth);

  os::File file_;
  std::size_t bytes_;
  int cpu_;
  std::vector<std::byte> storage_; ///< of the buffer
  std::byte* buffer_ = nullptr;    ///< page-aligned, uring_depth largest blocks
};

} // namespace nearfar::bench
