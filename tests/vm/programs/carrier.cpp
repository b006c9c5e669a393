// Tests whether a file system can hold a pool: one line of the steps that worked and their times.
//
//   carrier TIER FOLDER     TIER is shm, fsdax or file
//
// Prints: whether MAP_SYNC is granted, whether libpmemobj takes it for persistent memory, page
// faults of touching 16 MiB of a new mapping, and how many entries a map had after it was closed
// and opened again. Times in an emulator mean nothing, so none is taken.
#include <cstdio>
#include <cstdlib>
#include <libpmem.h>
#include <string>
#include <sys/resource.h>

#include "os/file.hpp"
#include "os/pages.hpp"
#include "structures/map.hpp"

using namespace nearfar;
using namespace nearfar::structures;

namespace {

using Number = std::uint64_t;
using Tested = Map<Pmem, Number, Number>;
constexpr std::size_t touched_bytes = 16 << 20;
constexpr Number entries = 5000;
constexpr persist::Layout layout{"carrier", 1};

template <class T>
T need(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().what);
  std::_Exit(1);
}

long minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

bool grants_map_sync(const os::File& file) {
  Result<os::MappedRange> range =
      os::map_range(touched_bytes, os::PageSize::system, file.fd(), /*sync=*/true);
  return bool(range);
}

long faults_of_touching(const os::File& file) {
  const os::MappedRange range =
      need(os::map_range(touched_bytes, os::PageSize::system, file.fd(), /*sync=*/false));
  const long before = minor_faults();
  os::prefault(range);
  return minor_faults() - before;
}

/// The answer of libpmem on a file that it maps itself.
int is_pmem(const std::string& path) {
  int found = 0;
  std::size_t bytes = 0;
  void* mapped = pmem_map_file(path.c_str(), touched_bytes, PMEM_FILE_CREATE, 0600, &bytes, &found);
  if (mapped == nullptr) {
    std::fprintf(stderr, "%s\n", pmem_errormsg());
    std::_Exit(1);
  }
  pmem_unmap(mapped, bytes);
  return found;
}

Number entries_after_reopening(const tier::Spec& place) {
  {
    persist::Pool pool =
        need(persist::Pool::create(place, layout, {32 << 20, sizeof(MapRoot), false}));
    Pmem medium(pool);
    const auto map = need(Tested::open(medium, *reinterpret_cast<MapRoot*>(pool.root())));
    for (Number key = 0; key < entries; ++key)
      need(map->insert(key, key));
  }
  persist::Pool pool = need(persist::Pool::open(place, layout));
  Pmem medium(pool);
  const auto map = need(Tested::open(medium, *reinterpret_cast<MapRoot*>(pool.root())));
  need(map->verify());
  return map->size();
}

} // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: carrier TIER FOLDER\n");
    return 2;
  }
  const std::string folder = arguments[2];
  os::File file = need(os::create_unnamed(folder.c_str()));
  need(os::reserve_space(file, touched_bytes));
  std::printf("map_sync %d\n", grants_map_sync(file) ? 1 : 0);
  std::printf("faults %ld\n", faults_of_touching(file));
  std::printf("is_pmem %d\n", is_pmem(folder + "/mapped"));
  const std::string place = std::string(arguments[1]) + ":" + folder + "/carried";
  std::printf("entries %lu\n", static_cast<unsigned long>(
                                   entries_after_reopening(need(tier::parse(place.c_str())))));
  return 0;
}
