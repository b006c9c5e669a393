#include "persist/pool_file.hpp"

#include <cstdio>
#include <cstring>
#include <libpmem.h>
#include <utility>

#include "os/pages.hpp"
#include "tier/mapping.hpp"

namespace nearfar::persist {

namespace {

constexpr std::size_t header_bytes = 4096; // libpmemobj wants it zeroed, and writes all the rest
constexpr std::size_t device_unit = 2 << 20;

Status check_room(const tier::Spec& place, const char* where, std::size_t bytes) {
  Result<std::size_t> room = tier::capacity(place);
  if (!room) return room.error();
  if (bytes <= *room) return Done{};
  return Error::make(Errc::no_space, "a pool of %zu bytes does not fit: %s has %zu bytes free",
                     bytes, where, *room)
      .try_next("ask for a smaller pool, or name a place with more room");
}

Status clear_header(const os::File& device) {
  Result<os::MappedRange> head =
      os::map_range(device_unit, os::PageSize::system, device.fd(), false);
  if (!head) return head.error();
  pmem_memset_persist(head->data(), 0, header_bytes);
  return Done{};
}

} // namespace

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

PoolFile& PoolFile::operator=(PoolFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  std::swap(name_, other.name_);
  std::swap(bytes_, other.bytes_);
  std::swap(unnamed_, other.unnamed_);
  std::swap(clear_, other.clear_);
  return *this;
}

PoolFile::~PoolFile() {
  if (clear_) static_cast<void>(clear_header(file_));
}

Result<PoolFile> PoolFile::create(const tier::Spec& place, std::size_t bytes, bool temporary) {
  if (place.node >= 0) return on_node(place, bytes);
  if (place.kind->maps != tier::Maps::device) return in_file(place, bytes);
  Result<PoolFile> made = on_device(place, temporary);
  if (made)
    if (Status s = check_room(place, place.path, bytes); !s) return s.error();
  return made;
}

Result<PoolFile> PoolFile::in_file(const tier::Spec& place, std::size_t bytes) {
  if (Status s = os::check_place(place.path); !s) return s.error();
  PoolFile made;
  made.unnamed_ = os::is_directory(place.path);
  char name[sizeof place.path + 40];
  std::snprintf(name, sizeof name, "%s", place.path);
  if (made.unnamed_) os::unused_name(place.path, ".pool", name, sizeof name);
  made.path_ = made.name_ = name;
  made.bytes_ = bytes;
  tier::Spec there = place;
  std::snprintf(there.path, sizeof there.path, "%s", parent_of(name).c_str());
  if (Status s = check_room(there, there.path, bytes); !s) return s.error();
  return made;
}

/// A file in memory keeps the policy of a mapping of it: later mappings, also those of libpmemobj,
/// get pages of that node.
Result<PoolFile> PoolFile::on_node(const tier::Spec& place, std::size_t bytes) {
  const std::string node = "numa:" + std::to_string(place.node);
  if (Status s = check_room(place, node.c_str(), bytes); !s) return s.error();
  Result<os::File> file = os::create_in_memory("nearfar pool");
  if (!file) return file.error();
  if (const int code = os::set_file_size(file->fd(), bytes); code != 0)
    return Error::make(Errc::no_space, "cannot make a file of %zu bytes in memory: %s", bytes,
                       std::strerror(code));
  Result<os::MappedRange> range = os::map_range(bytes, os::PageSize::system, file->fd(), false);
  if (!range) return range.error();
  if (Status s = os::bind_to_node(*range, place.node); !s) return s.error();
  if (Status s = os::reserve_space(*file, bytes); !s) return s.error();
  char path[40];
  os::write_descriptor_path(*file, path, sizeof path);
  PoolFile made;
  made.file_ = std::move(*file);
  made.path_ = path;
  made.name_ = node;
  made.bytes_ = bytes;
  return made;
}

Result<PoolFile> PoolFile::on_device(const tier::Spec& place, bool temporary) {
  Result<os::File> file = tier::open_backing(place);
  if (!file) return file.error();
  if (Status s = tier::claim_device(place, *file); !s) return s.error();
  Result<std::size_t> bytes = tier::capacity(place);
  if (!bytes) return bytes.error();
  if (Status s = clear_header(*file); !s) return s.error();
  PoolFile made;
  made.file_ = std::move(*file);
  made.path_ = made.name_ = place.path;
  made.bytes_ = *bytes;
  made.clear_ = temporary;
  return made;
}

Result<PoolFile> PoolFile::open(const tier::Spec& place) {
  if (place.node >= 0)
    return Error::make(Errc::bad_input,
                       "numa:%d has no pool to open: a pool in the memory of "
                       "a node ends with its program",
                       place.node)
        .try_next("make a new one, or keep pools in fsdax:FILE, devdax:DEVICE or file:FILE");
  PoolFile found;
  found.path_ = found.name_ = place.path;
  if (place.kind->maps != tier::Maps::device) return found;
  Result<os::File> file = os::open_existing(place.path, false);
  if (!file) return file.error();
  if (Status s = tier::claim_device(place, *file); !s) return s.error();
  found.file_ = std::move(*file);
  return found;
}

void PoolFile::remove_name() const {
  if (unnamed_) os::remove_file(path_.c_str());
}

void PoolFile::remove() {
  if (file_.fd() < 0)
    os::remove_file(path_.c_str());
  else if (name_ == path_) // a device; the memory of a node, named "numa:N", needs no removal
    clear_ = true;
}

} // namespace nearfar::persist
