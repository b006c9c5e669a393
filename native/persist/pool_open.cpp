// Creating and opening pools: their places, and the errors of libpmemobj.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <libpmem.h>
#include <libpmemobj.h>
#include <string_view>

#include "os/file.hpp"
#include "os/numa.hpp"
#include "os/pages.hpp"
#include "persist/libpmem.hpp"
#include "persist/pool.hpp"
#include "poolformat/pmdk.hpp"
#include "tier/mapping.hpp"

extern "C" [[gnu::weak]] void nearfar_crash_fence();

namespace nearfar::persist {

namespace {

constexpr mode_t owner_only = 0600;
constexpr std::size_t page = 4096;
constexpr std::size_t longest_layout = 900; // PMEMOBJ_MAX_LAYOUT is 1024, version and NUL included
constexpr std::string_view version_key = ";version=";

std::string layout_text(const Layout& layout) {
  return std::string(layout.name) + std::string(version_key) + std::to_string(layout.version);
}

Status check_kind(const tier::Spec& place) {
  if (!place.holds_pools())
    return Error::make(Errc::bad_input, "tier %s cannot hold a pool: it has no files",
                       place.kind->name)
        .try_next("use shm:FILE, numa:N, fsdax:FILE, devdax:DEVICE or file:FILE");
  if (place.paced())
    return Error::make(Errc::bad_input, "a pool cannot keep the pace of %s", place.profile)
        .try_next("name the tier without paced:");
  if (place.pages != os::PageSize::system)
    return Error::make(Errc::bad_input, "a pool cannot choose its page size")
        .try_next("drop pages= from the tier");
  return Done{};
}

/// Sizes of the file and of the heap that begins in it, from libpmemobj's own headers: its error
/// message for a truncated pool does not say that it is truncated.
bool is_cut_short(const char* path, std::size_t& found, std::size_t& wanted) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;
  std::uint64_t heap = 0;
  std::uint32_t zone[2] = {};
  const bool read =
      std::fseek(file, static_cast<long>(pmdk::descriptor_at::heap_offset), SEEK_SET) == 0 &&
      std::fread(&heap, 8, 1, file) == 1 && heap < (1u << 30) &&
      std::fseek(file, static_cast<long>(heap + pmdk::heap_header_bytes), SEEK_SET) == 0 &&
      std::fread(zone, 4, 2, file) == 2 && zone[0] == pmdk::zone_magic &&
      std::fseek(file, 0, SEEK_END) == 0;
  found = static_cast<std::size_t>(std::ftell(file));
  std::fclose(file);
  wanted = heap + pmdk::heap_header_bytes + pmdk::zone_meta_bytes + pmdk::chunk_bytes * zone[1];
  return read && found < wanted;
}

Error cut_short(const char* path, std::size_t found, std::size_t wanted) {
  return Error::make(Errc::bad_input, "pool %s was cut short: it has %zu bytes of %zu", path, found,
                     wanted)
      .try_next("bring it back from a copy: what was beyond its end is lost");
}

Error without_header(const char* path, std::size_t found) {
  return Error::make(
             Errc::bad_input,
             "pool %s has %zu bytes: a crash interrupted pmemobj_create(), or the file is another",
             path, found)
      .try_next("remove the file, and create the pool again");
}

/// Compares the layout that libpmemobj reports with the expected one.
Error other_layout(const char* path, std::string_view found, const Layout& layout) {
  const std::size_t split = found.rfind(version_key);
  const std::string_view name = found.substr(0, split);
  if (split == std::string_view::npos || name != layout.name)
    return Error::make(Errc::bad_input, "pool %s is of another type: it holds '%.*s', not '%s'",
                       path, static_cast<int>(std::min<std::size_t>(found.size(), 80)),
                       found.data(), layout.name)
        .try_next("name a pool that this program made");
  const std::string_view version = found.substr(split + version_key.size());
  return Error::make(Errc::bad_input,
                     "pool %s has version %.*s of layout '%s', and this program knows version %u",
                     path, static_cast<int>(version.size()), version.data(), layout.name,
                     layout.version)
      .try_next("open it with the program that made it, or make a new pool");
}

Error refusal(const char* doing, const char* path, const Layout& layout) {
  const int code = errno;
  const std::string_view message = pmemobj_errormsg();
  constexpr std::string_view stored = "pool created with layout \"";
  std::size_t found = 0, wanted = 0;
  const auto make = [&](Errc errc, const char* next) {
    Error error =
        Error::make(errc, "cannot %s pool %s: %.*s", doing, path,
                    static_cast<int>(std::min<std::size_t>(message.size(), 150)), message.data());
    error.os_errno = code;
    return error.try_next("%s", next);
  };
  switch (code) {
  case ENOENT: return make(Errc::not_found, "make it first, or name another file");
  case EEXIST: return make(Errc::exists, "open it, or name a file that does not exist yet");
  case EACCES:
  case EPERM:
  case EROFS: return make(Errc::no_permission, "choose a file that you may write to");
  case ENOSPC:
  case EFBIG:
  case EDQUOT: return make(Errc::no_space, "ask for a smaller pool, or name a path with more room");
  case EWOULDBLOCK: {
    Error error =
        Error::make(Errc::unsupported, "pool %s is already open, here or in another process", path);
    error.os_errno = code;
    return error.try_next("close it there first: one process at a time may use a pool");
  }
  default: break;
  }
  if (const std::size_t at = message.find(stored); at != std::string_view::npos) {
    const std::string_view rest = message.substr(at + stored.size());
    return other_layout(path, rest.substr(0, rest.find('"')), layout);
  }
  if (is_cut_short(path, found, wanted)) return cut_short(path, found, wanted);
  return make(Errc::bad_input, "name a pool that this program made; `pmempool check` looks closer");
}

Status check_options(const tier::Spec& place, const Layout& layout, const PoolOptions& options) {
  if (Status s = check_kind(place); !s) return s.error();
  if (std::strlen(layout.name) == 0 || std::strlen(layout.name) > longest_layout)
    return Error::make(Errc::bad_input, "the name of a layout has 1 to %zu bytes", longest_layout)
        .try_next("give the layout another name");
  if (options.bytes < smallest_pool_bytes)
    return Error::make(Errc::bad_input, "a pool of %zu bytes is too small", options.bytes)
        .try_next("ask for %zu bytes (8 MiB) at least", smallest_pool_bytes);
  return Done{};
}

/// A file on an fsdax: tier must be on a DAX file system.
Status check_dax(const tier::Spec& place, const char* path) {
  if (!place.kind->map_sync()) return Done{};
  Result<os::File> file = os::open_existing(path, false);
  if (!file) return file.error();
  if (os::is_dax(*file)) return Done{};
  return Error::make(Errc::unsupported, "%s does not lie on a DAX file system", path)
      .try_next("mount it with -o dax, or use file: for a disk, shm: for DRAM in its stead");
}

/// Of the file or device of an existing pool.
Result<std::size_t> size_of(const tier::Spec& place) {
  if (place.kind->maps == tier::Maps::device) return tier::capacity(place);
  Result<os::File> file = os::open_existing(place.path, false);
  if (!file) return file.error();
  return os::file_size(*file);
}

} // namespace

struct Pool::Opened {
  pmemobjpool* handle;
  bool as_pmem; ///< a pool in DRAM that libpmemobj flushes as persistent memory
};

/// Calls pmemobj_create() or pmemobj_open(). libpmemobj treats a pool in DRAM as persistent memory.
template <class Call>
Pool::Opened Pool::call_libpmemobj(const tier::Spec& place, const Call& call) {
  const TreatAsPmem emulation(place.kind->loses_all());
  pmemobjpool* handle = call();
  return {handle, emulation.used()};
}

void Pool::Close::operator()(pmemobjpool* pool) const { pmemobj_close(pool); }

Result<Pool> Pool::attach(const Opened& opened, const tier::Spec& place, const char* path) {
  Pool pool;
  pool.pool_.reset(opened.handle);
  pool.base_ = reinterpret_cast<std::byte*>(opened.handle);
  pool.is_pmem_ = opened.as_pmem || pmem_is_pmem(pool.base_, 1) == 1;
  pool.being_zeroed_ = std::make_unique<std::mutex>();
  pool.path_ = path;
  pool.kind_ = place.kind;
  if (place.kind->persists == tier::Persists::by_msync)
    pool.durability_ = Durability::msync;
  else
    pool.durability_ = pmem_has_auto_flush() == 1 ? Durability::fence : Durability::flush;
  // `nearfar crash run` sets PMEM_IS_PMEM_FORCE, which does no harm there: its recorder takes both
  // flushes and msync() into account, and it deletes the images on which it starts the program.
  const bool is_tested = nearfar_crash_fence != nullptr || getenv("NEARFAR_CRASH_IMAGE") != nullptr;
  if (place.kind->persists == tier::Persists::by_msync && pool.is_pmem() && !is_tested)
    return Error::make(Errc::unsupported,
                       "pool %s lies in a file, but libpmem treats every file as persistent memory",
                       path)
        .try_next("unset PMEM_IS_PMEM_FORCE");
  return pool;
}

Status Pool::populate(const tier::Spec& place, std::size_t bytes) {
  if (!place.populate && place.node < 0) return Done{};
  os::touch(base_, bytes);
  if (place.node < 0) return Done{};
  std::size_t elsewhere = 0;
  const int code = os::count_elsewhere(base_, bytes, place.node, elsewhere);
  if (code == 0 && elsewhere == 0) return Done{};
  return Error::make(Errc::failed_check, "%zu pages of the pool lie on other nodes than %d (%s)",
                     elsewhere, place.node, std::strerror(code))
      .try_next("report this with the kernel's version: a file's memory policy did not hold");
}

Result<Pool> Pool::create(const tier::Spec& place, const Layout& layout, const PoolOptions& asked) {
  PoolOptions options = asked;
  const std::size_t wanted = options.bytes = (asked.bytes + page - 1) & ~(page - 1);
  if (Status s = check_options(place, layout, options); !s) return s.error();
  Result<PoolFile> file = PoolFile::create(place, wanted, options.temporary);
  if (!file) return file.error();
  options.bytes = file->bytes();

  const char* name = file->name().c_str();
  const Opened opened = call_libpmemobj(place, [&] {
    return pmemobj_create(file->path().c_str(), layout_text(layout).c_str(), file->bytes_to_make(),
                          owner_only);
  });
  if (opened.handle == nullptr) return refusal("create", name, layout);
  Result<Pool> pool = attach(opened, place, name);
  const auto finish = [&]() -> Status {
    if (!pool) return pool.error();
    if (Status s = check_dax(place, name); !s) return s.error();
    if (Status s = pool->populate(place, wanted); !s) return s.error();
    return pool->make_root(options);
  };
  if (const Status finished = finish(); !finished) {
    file->remove();
    return finished.error();
  }
  file->remove_name();
  pool->file_ = std::move(*file);
  return pool;
}

Result<Pool> Pool::open(const tier::Spec& place, const Layout& layout,
                        const PoolOptions* finish_with) {
  if (Status s = check_kind(place); !s) return s.error();
  if (place.kind->persists == tier::Persists::emulated)
    if (Status s = os::check_memory_directory(parent_of(place.path).c_str()); !s) return s.error();
  if (Status s = check_dax(place, place.path); !s) return s.error();
  Result<PoolFile> file = PoolFile::open(place);
  if (!file) return file.error();
  Result<std::size_t> size = size_of(place);
  if (!size) return size.error();
  if (*size < page) return without_header(place.path, *size); // pmemobj_open() would end by SIGBUS
  std::size_t found = 0, wanted = 0;
  if (is_cut_short(place.path, found, wanted)) return cut_short(place.path, found, wanted);
  const Opened opened =
      call_libpmemobj(place, [&] { return pmemobj_open(place.path, layout_text(layout).c_str()); });
  if (opened.handle == nullptr) return refusal("open", place.path, layout);
  Result<Pool> pool = attach(opened, place, place.path);
  if (!pool) return pool.error();
  pool->file_ = std::move(*file);
  const auto find = [&]() -> Status {
    if (finish_with == nullptr || pool->has_root()) return pool->find_root();
    PoolOptions options = *finish_with;
    options.bytes = *size;
    return pool->make_root(options);
  };
  if (Status s = find(); !s) return s.error();
  if (Status s = pool->finish_being_zeroed(); !s) return s.error();
  if (Status s = pool->populate(place, pool->bytes()); !s) return s.error();
  return pool;
}

Result<tier::Spec> place_of(const char* path) {
  tier::Spec place;
  if (std::strlen(path) >= sizeof place.path)
    return Error::make(Errc::bad_input, "the path has more than %zu bytes", sizeof place.path - 1)
        .try_next("go to its directory and name the file alone");
  Result<os::File> file = os::open_existing(path, false);
  if (!file) return file.error();
  std::snprintf(place.path, sizeof place.path, "%s", path);
  place.kind = tier::find_kind(os::is_dax(*file)                                     ? "fsdax"
                               : os::check_memory_directory(parent_of(path).c_str()) ? "shm"
                                                                                     : "file");
  return place;
}

} // namespace nearfar::persist
