// Address space at addresses that the caller chooses: reserve it, map into it, release pages.
//
// Purpose        the windows of libhmalloc; measurements map with os/pages.hpp.
// Errors         every int is an errno, 0 for success; nothing allocates, so that all of this works
//                below malloc.
// Thread safety  functions on different ranges may run at once.
// Freestanding   no exceptions, no C++ runtime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::os {

inline constexpr std::size_t page_bytes = 4096; ///< the smallest page of x86-64

/// Inaccessible address space at a multiple of `alignment` (a power of two); nullptr if there is
/// not so much.
std::byte* reserve_space_at(std::size_t bytes, std::size_t alignment);

/// The same at `at`; replaces the mappings there. An errno.
int reserve_fixed(std::byte* at, std::size_t bytes);

/// Private zeroed memory anywhere; nothing is charged for it until it is touched, where the system
/// allows that. nullptr on failure.
std::byte* map_anonymous(std::size_t bytes);

/// Private zeroed memory anywhere that is only readable until make_writable(). nullptr on failure.
std::byte* map_readable(std::size_t bytes);
/// Makes the pages of [from, to) of private memory writable, which counts against RLIMIT_DATA. An
/// errno.
int make_writable(const void* from, const void* to);

void unmap(std::byte* at, std::size_t bytes);

/// Whether a mapping may replace others: `replace` is for use inside a reservation, `fresh` fails
/// with EEXIST if something is mapped there.
enum class Place : unsigned char { replace, fresh };

/// Private zeroed memory at `at`. `charged` has the kernel account for it now.
int map_anonymous_at(std::byte* at, std::size_t bytes, Place place, bool charged);

/// A shared mapping of a file at `at`; `sync` asks for MAP_SYNC.
int map_file_at(std::byte* at, std::size_t bytes, int fd, std::uint64_t offset, bool sync,
                Place place);

/// Maps the pages of a shared mapping a second time at `at`, where it replaces other mappings.
/// Requires no descriptor.
int map_again_at(std::byte* from, std::byte* at, std::size_t bytes);

/// Moves a mapping over another one (mremap).
int move_mapping(std::byte* from, std::byte* to, std::size_t bytes);

enum class Access : unsigned char { none, read_write };
int protect(std::byte* at, std::size_t bytes, Access access);

/// Releases pages: anonymous ones are zero when touched again, those of a file have its contents.
int discard(std::byte* at, std::size_t bytes);

/// Punches the range out of the file that is mapped there: zero when touched again.
int punch(std::byte* at, std::size_t bytes);

/// Touches all pages for writing without changing them; ENOMEM or EFAULT (no room) where the kernel
/// cannot give them. EINVAL before Linux 5.14.
int populate(std::byte* at, std::size_t bytes);

/// Asks for transparent huge pages, or for none.
int advise_huge(std::byte* at, std::size_t bytes, bool huge);

/// Excludes the range from children (MADV_DONTFORK).
int dont_fork(std::byte* at, std::size_t bytes);

enum class Read : std::uint8_t {
  done,
  absent,  ///< not all of it can be read
  refused, ///< this process may not use the call (process_vm_readv): nothing is known
};
/// Copies `bytes` of this process that may not be mapped.
Read try_read(const void* from, void* to, std::size_t bytes);

struct Area {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};
/// Memory that the process has by brk(), which libc's malloc uses first. Empty if /proc does not
/// report it.
Area program_break();

/// RLIMIT_AS, SIZE_MAX for none.
std::size_t address_space_limit();

/// Whether vm.overcommit_memory is 2: every writable page is charged when it is mapped.
bool strict_overcommit();

} // namespace nearfar::os
