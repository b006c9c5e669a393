#include "os/library_descriptor.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test_support.hpp"

using namespace nearfar;

namespace {

os::LibraryDescriptor open_one(const test::Folder& folder) {
  Result<os::File> file = os::create_unnamed(folder.path().c_str());
  REQUIRE(bool(file));
  os::LibraryDescriptor descriptor;
  descriptor.adopt(std::move(*file));
  return descriptor;
}

} // namespace

TEST_CASE("a library's descriptor has a number above those that programs use, closed on exec") {
  const test::Folder folder;
  const int lowest_free = dup(STDERR_FILENO);
  close(lowest_free);
  os::LibraryDescriptor descriptor = open_one(folder);
  CHECK(descriptor.get() > 255);
  CHECK((fcntl(descriptor.get(), F_GETFD) & FD_CLOEXEC) != 0);
  const int next = dup(STDERR_FILENO);
  CHECK(next == lowest_free);
  close(next);
  const int number = descriptor.get();
  descriptor.close();
  CHECK(descriptor.get() == -1);
  CHECK(fcntl(number, F_GETFD) == -1);
}

TEST_CASE("a descriptor that the program closed or reused is not used") {
  const test::Folder folder;
  os::LibraryDescriptor descriptor = open_one(folder);
  const int number = descriptor.get();
  void* mapped = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, number, 0); // its inode stays in use
  REQUIRE(mapped != MAP_FAILED);
  close(number);
  CHECK(descriptor.get() == -1);
  Result<os::File> own = os::create_unnamed(folder.path().c_str());
  REQUIRE(bool(own));
  REQUIRE(dup2(own->fd(), number) == number);
  CHECK(descriptor.get() == -1);
  descriptor.close();
  CHECK(fcntl(number, F_GETFD) >= 0); // the program's file stays open
  close(number);
  munmap(mapped, 4096);
}
