#include <doctest/doctest.h>

#include <unistd.h>

#include "sample/process_map.hpp"

using namespace nearfar::sample;

namespace {

MappedRange range(std::uint64_t begin, std::uint64_t end, std::uint32_t file = 0,
                  std::uint64_t offset = 0) {
  MappedRange made;
  made.begin = begin;
  made.end = end;
  made.file = file;
  made.offset = offset;
  return made;
}

} // namespace

TEST_CASE("a mapping takes the place of what was there, and splits it") {
  ProcessMap map;
  map.add(1, range(0x1000, 0x9000, 7, 0x100));
  map.add(1, range(0x3000, 0x4000, 8));
  REQUIRE(map.find(1, 0x2fff));
  CHECK(map.find(1, 0x2fff)->file == 7);
  CHECK(map.find(1, 0x3000)->file == 8);
  REQUIRE(map.find(1, 0x4000));
  CHECK(map.find(1, 0x4000)->file == 7);
  CHECK(map.find(1, 0x4000)->offset == 0x100 + 0x3000);
  CHECK_FALSE(map.find(1, 0x9000));
  CHECK_FALSE(map.find(1, 0xfff));
  CHECK_FALSE(map.find(2, 0x2000));
}

TEST_CASE("a fork copies mappings, a program that starts has none") {
  ProcessMap map;
  map.add(1, range(0x1000, 0x2000, 7));
  map.fork(1, 2);
  map.add(2, range(0x1000, 0x2000, 9));
  CHECK(map.find(1, 0x1000)->file == 7);
  CHECK(map.find(2, 0x1000)->file == 9);
  map.start_program(1);
  CHECK_FALSE(map.find(1, 0x1000));
}

TEST_CASE("names of the kernel are not files, and a file has one number") {
  ProcessMap map;
  MappedRange one = range(0x1000, 0x2000);
  for (const char* name : {"", "//anon", "[heap]", "[stack]"}) {
    map.name_range(one, name);
    CHECK(one.file == 0);
    CHECK(map.names()[one.name] == (name[0] == '[' ? name : ""));
  }
  map.name_range(one, "/no/such/file");
  const std::uint32_t number = one.file;
  CHECK(number != 0);
  CHECK(one.name == 0);
  map.name_range(one, "/no/such/file");
  CHECK(one.file == number);
  CHECK_FALSE(map.files()[number].elf);
}

TEST_CASE("neighboring mappings of one name are one region") {
  ProcessMap map;
  map.add(1, range(0x1000, 0x2000));
  map.add(1, range(0x2000, 0x5000));
  map.add(1, range(0x6000, 0x7000));
  MappedRange heap = range(0x7000, 0x8000);
  map.name_range(heap, "[heap]");
  map.add(1, heap);
  MappedRange file = range(0x8000, 0x9000);
  map.name_range(file, "/no/such/file");
  map.add(1, file);
  const std::vector<ProcessRegion> regions = map.regions();
  REQUIRE(regions.size() == 4);
  CHECK(regions[0].begin == 0x1000);
  CHECK(regions[0].end == 0x5000);
  CHECK(regions[2].begin == 0x7000);
  CHECK(regions[2].name == "[heap]");
  CHECK(regions[3].name == "/no/such/file");
}

namespace {
int initialized_global = 5;
int zeroed_globals[1 << 16];
} // namespace

TEST_CASE("initialized and zeroed globals are static data of this program") {
  ProcessMap map;
  REQUIRE(map.read(getpid()));
  const auto initialized = reinterpret_cast<std::uint64_t>(&initialized_global);
  const auto zeroed = reinterpret_cast<std::uint64_t>(&zeroed_globals[(1 << 16) - 1]);
  const auto first = map.static_data(getpid(), initialized);
  const auto last = map.static_data(getpid(), zeroed);
  REQUIRE(first);
  REQUIRE(last);
  CHECK(first->begin == last->begin);
  CHECK(first->begin <= initialized);
  CHECK(last->end > zeroed);
  CHECK(map.files()[first->file].path.find("sample_test") != std::string::npos);
  const int local = 0;
  CHECK_FALSE(map.static_data(getpid(), reinterpret_cast<std::uint64_t>(&local)));
  CHECK_FALSE(map.static_data(getpid(), reinterpret_cast<std::uint64_t>(&getpid)));
}

TEST_CASE("static data is a region of its own, whatever anonymous memory is next to it") {
  ProcessMap map;
  REQUIRE(map.read(getpid()));
  const auto data = map.static_data(getpid(), reinterpret_cast<std::uint64_t>(&initialized_global));
  REQUIRE(data);
  map.add(getpid(), range(data->end, data->end + 0x3000));
  std::vector<ProcessRegion> found;
  for (const ProcessRegion& region : map.regions())
    if (region.begin < data->end + 0x3000 && region.end > data->begin) found.push_back(region);
  REQUIRE(found.size() == 2);
  CHECK(found[0].is_statics);
  CHECK(found[0].begin == data->begin);
  CHECK(found[0].end == data->end);
  CHECK(found[0].name == map.files()[data->file].path);
  CHECK_FALSE(found[1].is_statics);
  CHECK(found[1].begin == data->end);
}

TEST_CASE("the code of this program is found in its file by its address") {
  ProcessMap map;
  REQUIRE(map.read(getpid()));
  const auto address = reinterpret_cast<std::uint64_t>(&getpid);
  const MappedRange* found = map.find(getpid(), address);
  REQUIRE(found);
  CHECK(found->is_code);
  unsigned char code[8];
  REQUIRE(map.read_code(*found, address, code, sizeof code) == sizeof code);
  CHECK(std::equal(code, code + sizeof code, reinterpret_cast<const unsigned char*>(&getpid)));
  const auto place = map.place(getpid(), address);
  REQUIRE(place);
  CHECK(place->file == found->file);
}

TEST_CASE("a process that is not there has no mappings") {
  ProcessMap map;
  CHECK_FALSE(map.read(999'999'999));
}

TEST_CASE("a file with another build id than the mapped one had is not read") {
  const std::uint8_t other[20] = {1, 2, 3};
  ProcessMap map;
  map.expect_build_id("/bin/sh", other);
  MappedRange mapped = range(0x1000, 0x2000);
  map.name_range(mapped, "/bin/sh");
  REQUIRE(mapped.file != 0);
  std::uint8_t code[16];
  CHECK(map.read_code(mapped, 0x1000, code, sizeof code) == 0);
  CHECK_FALSE(map.files()[mapped.file].elf);
  ProcessMap others;
  MappedRange same = range(0x1000, 0x2000);
  others.name_range(same, "/bin/sh");
  CHECK(others.read_code(same, 0x1000, code, sizeof code) == sizeof code);
}
