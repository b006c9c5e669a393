#include "os/file.hpp"

#include <cerrno>
#include <doctest/doctest.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include "test_support.hpp"

using namespace nearfar;

namespace {
constexpr std::size_t mib = std::size_t{1} << 20;
bool exists(const std::string& path) { return std::filesystem::exists(path); }
} // namespace

TEST_CASE("an unnamed file in a folder leaves nothing, not even while it is used") {
  const test::Folder folder;
  Result<os::File> file = os::create_unnamed(folder.path().c_str());
  REQUIRE(bool(file));
  CHECK(write(file->fd(), "data", 4) == 4);
  CHECK(folder.empty());
}

TEST_CASE("an unnamed file is refused in a missing directory, in place of its parent") {
  const test::Folder folder;
  Result<os::File> file = os::create_unnamed(folder.path("mistyped").c_str());
  REQUIRE(!file);
  CHECK(file.error().code == Errc::not_found);
  CHECK(folder.empty());
}

TEST_CASE("a file that exists is refused and left as it was") {
  const test::Folder folder;
  const std::string path = folder.path("mine");
  std::ofstream(path) << "precious";
  for (const bool unnamed : {true, false}) {
    Result<os::File> file =
        unnamed ? os::create_unnamed(path.c_str()) : os::create_new(path.c_str());
    REQUIRE(!file);
    CHECK(file.error().code == Errc::exists);
    CHECK(std::string(file.error().next) != "");
  }
  std::string kept;
  std::ifstream(path) >> kept;
  CHECK(kept == "precious");
}

TEST_CASE("claimed ranges never overlap, and are free again once their file is closed") {
  const test::Folder folder;
  const std::string path = folder.path("device");
  std::ofstream(path) << "anything";
  const auto opened = [&path] {
    Result<os::File> file = os::open_existing(path.c_str(), false);
    REQUIRE(bool(file));
    return std::move(*file);
  };
  const auto claim = [](const os::File& file) {
    return os::claim_range(file, 3 * mib, 2 * mib, 8 * mib);
  };
  os::File files[3] = {opened(), opened(), opened()};
  Result<std::size_t> first = claim(files[0]);
  REQUIRE(bool(first));
  CHECK(*first == 0);
  Result<std::size_t> second = claim(files[1]);
  REQUIRE(bool(second));
  CHECK(*second == 4 * mib); // the next multiple of the unit
  Result<std::size_t> third = claim(files[2]);
  REQUIRE(!third);
  CHECK(third.error().code == Errc::no_space);
  files[0] = os::File(); // closed
  Result<std::size_t> again = claim(files[2]);
  REQUIRE(bool(again));
  CHECK(*again == 0);
}

TEST_CASE("a new file has its name, and only its owner may read it") {
  const test::Folder folder;
  Result<os::File> file = os::create_new(folder.path("new").c_str());
  REQUIRE(bool(file));
  struct stat facts {};
  REQUIRE(stat(folder.path("new").c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
}

TEST_CASE("a folder is not taken for a file") {
  const test::Folder folder;
  Result<os::File> created = os::create_new(folder.path().c_str());
  REQUIRE(!created);
  CHECK(created.error().code == Errc::bad_input);
  Result<os::File> opened = os::open_existing(folder.path().c_str(), false);
  REQUIRE(!opened);
  CHECK(opened.error().code == Errc::bad_input);
}

TEST_CASE("a missing folder or file is reported as such") {
  const test::Folder folder;
  Result<os::File> created = os::create_unnamed(folder.path("no/such").c_str());
  REQUIRE(!created);
  CHECK(created.error().code == Errc::not_found);
  Result<os::File> opened = os::open_existing(folder.path("nothing").c_str(), false);
  REQUIRE(!opened);
  CHECK(opened.error().code == Errc::not_found);
  CHECK(std::string(opened.error().next) != "");
}

TEST_CASE("reserved space is really there") {
  const test::Folder folder;
  Result<os::File> file = os::create_unnamed(folder.path().c_str());
  REQUIRE(bool(file));
  REQUIRE(bool(os::reserve_space(*file, mib)));
  struct stat facts {};
  REQUIRE(fstat(file->fd(), &facts) == 0);
  CHECK(facts.st_size == static_cast<off_t>(mib));
  CHECK(static_cast<std::size_t>(facts.st_blocks) * 512 >= mib);
  CHECK(bool(os::drop_page_cache(*file, mib)));
}

TEST_CASE("more than any file system holds cannot be reserved") {
  const test::Folder folder;
  Result<os::File> file = os::create_unnamed(folder.path().c_str());
  REQUIRE(bool(file));
  Status reserved = os::reserve_space(*file, std::size_t{1} << 60);
  REQUIRE(!reserved);
  CHECK(reserved.error().code == Errc::no_space);
}

TEST_CASE("free space is that of an existing directory, not of one above a mistyped path") {
  const test::Folder folder;
  Result<std::size_t> room = os::free_space(folder.path().c_str());
  REQUIRE(bool(room));
  CHECK(*room > 0);
  for (const std::string& mistyped : {folder.path("a/b"), std::string("/no-such-name")}) {
    Result<std::size_t> refused = os::free_space(mistyped.c_str());
    REQUIRE(!refused);
    CHECK(refused.error().code == Errc::not_found);
  }
}

TEST_CASE("free space below a file is refused") {
  const test::Folder folder;
  std::ofstream(folder.path("file")) << "x";
  Result<std::size_t> room = os::free_space(folder.path("file/below").c_str());
  REQUIRE(!room);
  CHECK(room.error().code == Errc::not_found);
  CHECK(exists(folder.path("file")));
}

TEST_CASE("a moved file is closed once, by its new owner") {
  const test::Folder folder;
  int fd = -1;
  {
    os::File kept;
    {
      Result<os::File> file = os::create_unnamed(folder.path().c_str());
      REQUIRE(bool(file));
      fd = file->fd();
      kept = std::move(*file);
    }
    CHECK(kept.fd() == fd);
    struct stat facts {};
    CHECK(fstat(fd, &facts) == 0);
  }
  struct stat facts {};
  CHECK(fstat(fd, &facts) != 0);
}

TEST_CASE("a page cache that cannot be dropped is reported: tmpfs") {
  Result<os::File> file = os::create_unnamed("/dev/shm");
  REQUIRE(bool(file));
  const std::vector<char> contents(mib, 'x');
  REQUIRE(pwrite(file->fd(), contents.data(), mib, 0) == static_cast<ssize_t>(mib));
  Status dropped = os::drop_page_cache(*file, mib);
  REQUIRE(!dropped);
  CHECK(dropped.error().code == Errc::unsupported);
}

TEST_CASE("a file in memory keeps its size, and what was not written reads as zero") {
  Result<os::File> file = os::create_sized_in_memory("test", std::uint64_t{1} << 42);
  REQUIRE(bool(file));
  CHECK(os::set_file_size(file->fd(), 0) == EPERM);
  char bytes[2] = {'x', 'x'};
  CHECK(os::read_at(*file, (std::uint64_t{1} << 42) - 1, bytes, 2) == 1);
  CHECK(bytes[0] == '\0');
}

TEST_CASE("a place for a file is checked before it is made") {
  const test::Folder folder;
  CHECK(bool(os::check_place(folder.path().c_str())));
  CHECK(bool(os::check_place(folder.path("new").c_str())));
  CHECK(bool(os::check_place("new-in-the-current-directory")));
  CHECK(os::check_place(folder.path("missing/new").c_str()).error().code == Errc::not_found);
  CHECK(os::check_place("/proc/self/status").error().code == Errc::exists);
}

TEST_CASE("only a directory in memory emulates persistent memory") {
  const test::Folder folder;
  CHECK(bool(os::check_memory_directory("/dev/shm")));
  CHECK(os::check_memory_directory("/nonexistent").error().code == Errc::not_found);
  CHECK(os::check_memory_directory("/proc").error().code == Errc::bad_input);
}
