// What a pool lies on: a file, memory of one node, a DAX device.
//
// Thread safety  a PoolFile is used by one thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"
#include "os/file.hpp"
#include "tier/spec.hpp"

namespace nearfar::persist {

/// The directory that a path lies in.
std::string parent_of(const std::string& path);

/// Made before libpmemobj is called, and given up after its pool is closed.
class PoolFile {
public:
  /// For a new pool of `bytes`. A device is claimed as a whole and its header cleared; `temporary`
  /// clears it again at the end. Errors: no_space; exists (the file, or a pool on the device);
  /// not_found; no_permission; unsupported (a device in use, no such node).
  static Result<PoolFile> create(const tier::Spec& place, std::size_t bytes, bool temporary);
  /// For a pool that is there. Errors: bad_input (a node), those of the device.
  static Result<PoolFile> open(const tier::Spec& place);

  PoolFile() = default;
  PoolFile(PoolFile&& other) noexcept { *this = std::move(other); }
  PoolFile& operator=(PoolFile&& other) noexcept;
  ~PoolFile();

  const std::string& path() const { return path_; } ///< what libpmemobj opens
  const std::string& name() const { return name_; } ///< what people call it
  std::size_t bytes() const { return bytes_; }
  /// The size for libpmemobj: 0 where what is at path() has one already.
  std::size_t bytes_to_make() const { return file_.fd() >= 0 ? 0 : bytes_; }

  /// The pool is open: takes the name of an unnamed one away.
  void remove_name() const;
  /// The pool could not be made: nothing of it stays.
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
