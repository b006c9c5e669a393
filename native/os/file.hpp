// Files that are removed with their last use, and properties of the file system that holds them.
//
// Thread safety  a File is used by one thread at a time.
// Freestanding   no exceptions, no std::string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace nearfar::os {

/// An open descriptor that closes itself.
class File {
public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File();

  int fd() const { return fd_; }
  /// Returns the descriptor, which the caller closes.
  int release() { return std::exchange(fd_, -1); }

private:
  int fd_ = -1;
};

/// Creates a file without a name: it is gone when its last descriptor and mapping are, even after
/// kill -9. `directory` must exist: a mistyped path must not be measured on the file system above
/// it.
Result<File> create_unnamed(const char* directory);

/// Creates a file in memory, without a name and beyond the bounds of any mount (memfd_create).
Result<File> create_in_memory(const char* label);

/// Creates such a file of a size that no process can change, all zeros; pages are reserved when
/// they are written. Errors: no_space if RLIMIT_FSIZE is lower, os_error.
Result<File> create_sized_in_memory(const char* label, std::uint64_t bytes);

/// Reads up to `bytes` at an offset; returns how many were read, 0 also on failure.
std::size_t read_at(const File& file, std::uint64_t offset, void* to, std::size_t bytes);

/// A path by which this process can open the file of a descriptor again, even if it has no name.
void write_descriptor_path(const File& file, char* path, std::size_t bytes);

/// Target of a symbolic link, cut to the size of `path`, which is at least 1; empty if it cannot be
/// read.
void read_link(const char* link, std::span<char> path);
/// The same of an open file: its path.
void read_path(int fd, std::span<char> path);

/// The last component of the path of an open file, as in /proc/self/maps, without " (deleted)".
/// Empty if it is unknown or does not fit.
void read_file_name(int fd, char* name, std::size_t bytes);

/// Creates a file that must not exist yet, mode 0600. The caller removes it.
Result<File> create_new(const char* path);

bool is_directory(const char* path);

/// Removes the name of a file, if it has one.
void remove_file(const char* path);

/// Writes a path in `directory` that no file has and no other caller gets: for libraries that
/// require a name. Remove it as soon as the library has opened it.
void unused_name(const char* directory, const char* ending, char* name, std::size_t bytes);

/// Identity of a file or directory while it exists: device and inode.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};
/// Returns an errno, 0 for success.
int identify(const char* path, FileIdentity& identity);

/// Opens an existing file or device for reading and writing. `direct` asks for O_DIRECT.
Result<File> open_existing(const char* path, bool direct);

/// Writes all bytes at the file's offset, also after interrupted calls. False if the system
/// refused.
bool write_whole(int fd, const void* data, std::size_t bytes);

/// Opens a regular file for reading. Refuses a pipe or a device without waiting for it. Errors:
/// not_found, no_permission, bad_input (not a regular file).
Result<File> open_readonly(const char* path);

/// Whether `path` names this open file.
bool is_at(const File& file, const char* path);

/// The size of an open file.
Result<std::size_t> file_size(const File& file);

/// Takes an exclusive lock on a file (flock, as libpmemobj does) and makes sure that no other
/// process has it open or mapped (a write lease, where this user may take one). Held until the file
/// is closed. Errors: no_permission with errno EWOULDBLOCK if it is in use.
Status claim_alone(const File& file, const char* path);

/// Treatment of an overwritten block by the file system that holds a file.
struct BlockReuse {
  char name[16];        ///< of the file system, as mount shows it; "0x..." if it is not known
  bool copies_on_write; ///< old blocks stay until the file system reuses them
  bool in_memory;       ///< tmpfs, ramfs: blocks are pages, and may have been swapped out
};
BlockReuse block_reuse(const File& file);

/// Claims `bytes` of a file or device of `total` bytes that no other open descriptor has claimed,
/// in this process or another; returns their offset, a multiple of `unit`. The claim ends when the
/// File is closed. It binds only processes that claim. Errors: no_space.
Result<std::size_t> claim_range(const File& file, std::size_t bytes, std::size_t unit,
                                std::size_t total);

/// Reserves the blocks of a file, so that no later store can meet a full disk (SIGBUS).
Status reserve_space(const File& file, std::size_t bytes);

/// Reserves the blocks of a part of a file. An errno, 0 for success; nothing allocates.
int reserve_part(int fd, std::uint64_t offset, std::uint64_t bytes);

/// Sets the size of a file without reserving blocks. An errno, 0 for success.
int set_file_size(int fd, std::uint64_t bytes);

/// Bytes free to this user in the file system that holds `path`.
Result<std::size_t> free_space(const char* path);

/// Fails with not_found if nothing is at `path`, with exists if that is not a directory.
Status check_directory(const char* path);

/// Whether a file with or without a name can be created: `path` is a directory, or a new name in an
/// existing one. Errors: not_found, exists.
Status check_place(const char* path);

/// Fails with not_found unless `path` is a directory, with bad_input unless it lies in memory
/// (tmpfs or ramfs).
Status check_memory_directory(const char* path);

/// Writes dirty pages of the file's first `bytes` back and drops them from the page cache. Fails
/// with unsupported if they stay there, as those of a file system in memory do.
Status drop_page_cache(const File& file, std::size_t bytes);

/// Whether a regular file lies on a DAX file system (STATX_ATTR_DAX).
bool is_dax(const File& file);

} // namespace nearfar::os
