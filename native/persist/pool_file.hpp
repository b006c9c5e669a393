// Storage of a pool: a file, memory of one node, a DAX device.
//
// Thread safety  a PoolFile is used by one thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"
#include "os/file.hpp"
#include "tier/spec.hpp"

namespace nearfar::persist {

/// The directory that contains a path.
std::string parent_of(const std::string& path);

/// Created before libpmemobj is called, and closed after its pool.
class PoolFile {
public:
  /// For a new pool of `bytes`. A device is claimed as a whole and its header cleared; `temporary`
  /// clears it again at the end. Errors: no_space; exists (the file, or a pool on the device);
  /// not_found; no_permission; unsupported (a device in use, no such node).
  static Result<PoolFile> create(const tier::Spec& place, std::size_t bytes, bool temporary);
  /// For an existing pool. Errors: bad_input (a node), those of the device.
  static Result<PoolFile> open(const tier::Spec& place);

  PoolFile() = default;
  PoolFile(PoolFile&& other) noexcept { *this = std::move(other); }
  PoolFile& operator=(PoolFile&& other) noexcept;
  ~PoolFile();

  const std::string& path() const { return path_; } ///< that libpmemobj opens
  const std::string& name() const { return name_; } ///< in messages
  std::size_t bytes() const { return bytes_; }
  /// The size for libpmemobj: 0 if the file at path() has one already.
  std::size_t bytes_to_make() const { return file_.fd() >= 0 ? 0 : bytes_; }

  /// Call it when the pool is open: removes the name of an unnamed one.
  void remove_name() const;
  /// Call it when the pool could not be created: removes all of it.
  void discard();

private:
  static Result<PoolFile> in_file(const tier::Spec& place, std::size_t bytes);
  static Result<PoolFile> on_node(const tier::Spec& place, std::size_t bytes);
  static Result<PoolFile> on_device(const tier::Spec& place, bool temporary);

  os::File file_; ///< the memory file of a node, the device; -1 for files
  std::string path_;
  std::string name_;
  std::size_t bytes_ = 0;
  bool unnamed_ = false;
  bool clear_ = false; ///< the header of the device, at the end
};

} // namespace nearfar::persist
