// The half of PMDK's maps that libpmemobj itself does: making pools, filling them under the
// recorder, and opening images. Not watched.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <libpmemobj.h>

#include "crash/tool/pmdk.hpp"
#include "crash/tool/private_images.hpp"
#include "inspect/checksum.hpp"
#include "nearfar/crash_intrinsics.h"
#include "os/helper.hpp"
#include "poolformat/pmdk.hpp"
#include "structures/map_atomic.hpp"
#include "structures/map_rp.hpp"
#include "structures/map_tx.hpp"

namespace nearfar::crash {

namespace {

using structures::PoolObjects;
using MapAtomic = structures::MapAtomic<PoolObjects>;
using MapRp = structures::MapRp<PoolObjects>;
using MapTx = structures::MapTx<PoolObjects>;

constexpr const char* layout = "nearfar crash";

struct Close {
  void operator()(PMEMobjpool* pool) const { pmemobj_close(pool); }
};
using Pool = std::unique_ptr<PMEMobjpool, Close>;

Error refusal(const char* doing, const char* path) {
  return Error::make(Errc::os_error, "libpmemobj cannot %s %.80s: %s", doing, path,
                     pmemobj_errormsg())
      .try_next("look at the file system's room, and at the file");
}

/// The place of the map's handle: the root object is nothing else.
PMEMoid* handle(PMEMobjpool* pool) {
  return static_cast<PMEMoid*>(pmemobj_direct(pmemobj_root(pool, sizeof(PMEMoid))));
}

/// A handle that shows when it is torn. It names no object: the maps do not look.
PMEMoid value_of(std::uint64_t word) { return {word, ~word}; }

/// Calls work.operator()<Map>() for the map of that name.
template <class Work>
auto with_map(std::string_view structure, const Work& work) {
  if (structure == "map_tx") return work.template operator()<MapTx>();
  if (structure == "map_atomic") return work.template operator()<MapAtomic>();
  return work.template operator()<MapRp>();
}

template <class Map>
Status apply(Map& map, const Operation& operation) {
  if (operation.what == Operation::What::remove) {
    Result<std::optional<PMEMoid>> gone = map.remove(operation.key);
    if (!gone) return gone.error();
    return Done{};
  }
  Result<bool> fresh = map.insert(operation.key, value_of(operation.value));
  if (!fresh) return fresh.error();
  return Done{};
}

/// What a map holds, as words between blanks; or "!" and what is wrong.
template <class Map>
std::string list(const char* path, std::uint64_t keys) {
  const Pool pool(pmemobj_open(path, layout));
  if (!pool) return std::string("!pmemobj_open: ") + pmemobj_errormsg();
  PoolObjects objects(pool.get());
  Result<std::unique_ptr<Map>> opened = Map::open(objects, *handle(pool.get()));
  if (!opened) return std::string("!") + opened.error().what;
  Map* map = opened->get();
  if (Status sound = map->verify(); !sound) return std::string("!") + sound.error().what;
  std::string text;
  std::uint64_t count = 0;
  for (std::uint64_t key = 1; key <= keys; ++key) {
    const std::optional<PMEMoid> value = map->get(key);
    if (!value) continue;
    ++count;
    char pair[48];
    std::snprintf(pair, sizeof pair, "%" PRIx64 " %" PRIx64 " ", key, value->pool_uuid_lo);
    text += pair;
  }
  return count == map->size() ? text : "!its size is not the number of keys that it finds";
}

} // namespace

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Reduces the lanes of a pool: a thread uses one of them, but each opening recovers all, and a
/// pool is created with 1024.
bool leave_lanes_out(const char* path) {
  constexpr std::uint64_t lanes = 8;
  constexpr std::size_t own = pmdk::descriptor_at::checksum - pmdk::descriptor_at::begin;
  std::array<std::byte, pmdk::descriptor_bytes> bytes;
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path, "r+be"));
  if (!file || std::fseek(file.get(), pmdk::descriptor_at::begin, SEEK_SET) != 0 ||
      std::fread(bytes.data(), bytes.size(), 1, file.get()) != 1)
    return false;
  const std::size_t count = pmdk::descriptor_at::lane_count - pmdk::descriptor_at::begin;
  std::memcpy(&bytes[count], &lanes, sizeof lanes);
  const std::uint64_t sum = inspect::checksum(bytes, own);
  std::memcpy(&bytes[own], &sum, sizeof sum);
  return std::fseek(file.get(), pmdk::descriptor_at::begin, SEEK_SET) == 0 &&
         std::fwrite(bytes.data(), bytes.size(), 1, file.get()) == 1 &&
         std::fflush(file.get()) == 0;
}

} // namespace

bool is_pmdk(std::string_view structure) {
  return structure == "map_tx" || structure == "map_atomic" || structure == "map_rp";
}

Status make_pool(std::string_view structure, const char* path, std::size_t operations) {
  // Without the state of the DIMMs, which each opening would look for in all of /sys.
  int without = 0;
  pmemobj_ctl_set(nullptr, "sds.at_create", &without);
  const std::size_t bytes = PMEMOBJ_MIN_POOL + operations * 2048 / 4096 * 4096;
  {
    const Pool pool(pmemobj_create(path, layout, bytes, 0600));
    if (!pool) return refusal("make", path);
    PMEMoid* where = handle(pool.get());
    Status made = with_map(structure, [&]<class Map>() -> Status {
      PoolObjects objects(pool.get());
      Result<std::unique_ptr<Map>> map = Map::open(objects, *where);
      if (!map) return map.error();
      return Done{};
    });
    if (!made) return made;
  }
  if (leave_lanes_out(path)) return Done{};
  return Error::make(Errc::os_error, "cannot change %s: %s", path, std::strerror(errno));
}

Status fill_pool(std::string_view structure, const char* path,
                 const std::vector<Operation>& operations) {
  const Pool pool(pmemobj_open(path, layout));
  if (!pool) return refusal("open", path);
  return with_map(structure, [&]<class Map>() -> Status {
    PoolObjects objects(pool.get());
    Result<std::unique_ptr<Map>> map = Map::open(objects, *handle(pool.get()));
    if (!map) return map.error();
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (nearfar_crash_begin != nullptr) nearfar_crash_begin(i);
      if (Status done = apply(**map, operations[i]); !done) return done;
      if (nearfar_crash_end != nullptr) nearfar_crash_end(i);
    }
    return Done{};
  });
}

void apply_to_pmdk_model(std::string_view structure, const Operation& operation, Contents& model) {
  const auto known = std::find_if(model.begin(), model.end(),
                                  [&](const auto& entry) { return entry.first == operation.key; });
  if (operation.what == Operation::What::remove) {
    if (known != model.end()) model.erase(known);
  } else if (known == model.end()) {
    model.emplace_back(operation.key, operation.value);
  } else if (structure == "map_rp") { // the others keep the value that is there
    known->second = operation.value;
  }
}

struct Library::State {
  os::Helper helper;
  std::uint64_t limit_ms;
};

Library::Library(std::string_view structure, const os::File& image, std::uint64_t keys,
                 std::uint64_t limit_ms) {
  setenv("PMEM_IS_PMEM_FORCE", "1", 1); // a file in memory, flushed by instructions
  setenv("PMEM_NO_FLUSH", "1", 1);      // what it flushes is thrown away
  setenv("PMEMOBJ_NLANES", "1", 0);     // one thread; recovery goes through all lanes, as always
  const std::string path = "/proc/self/fd/" + std::to_string(image.fd());
  const auto serve = [structure = std::string(structure), path, keys](std::string_view) {
    make_mappings_private();
    return with_map(structure, [&]<class Map>() { return list<Map>(path.c_str(), keys); });
  };
  state_.reset(new State{os::Helper(serve, 2), limit_ms});
}

Library::~Library() = default;

Failure Library::look(Contents& found, std::string& why) {
  Result<os::Helper::Answer> answer = state_->helper.ask("", state_->limit_ms);
  char text[96];
  if (!answer) {
    why = answer.error().what;
    return Failure::crashed;
  }
  if (answer->ended.hung) {
    std::snprintf(text, sizeof text, "libpmemobj did not end within %" PRIu64 " ms",
                  state_->limit_ms);
    why = text;
    return Failure::hung;
  }
  if (answer->ended.signal != 0 || answer->ended.code != 0) {
    std::snprintf(text, sizeof text, "libpmemobj was killed by signal %d", answer->ended.signal);
    why = text;
    return Failure::crashed;
  }
  if (answer->text.starts_with('!')) {
    why = answer->text.substr(1);
    return Failure::refused;
  }
  const char* at = answer->text.c_str();
  for (char* end = nullptr; *at != '\0'; at = end + 1) {
    const std::uint64_t key = std::strtoull(at, &end, 16);
    found.emplace_back(key, std::strtoull(end, &end, 16));
  }
  return Failure::none;
}

} // namespace nearfar::crash
