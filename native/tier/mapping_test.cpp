#include "tier/mapping.hpp"

#include <cerrno>
#include <doctest/doctest.h>
#include <string>
#include <sys/stat.h>

#include "test_support.hpp"

using namespace nearfar;

TEST_CASE("a device that cannot be locked is not said to be in use") {
  const test::Folder folder;
  Result<tier::Spec> spec = tier::parse(("file:" + folder.path()).c_str());
  REQUIRE(bool(spec));
  const Status claimed = tier::claim_device(*spec, os::File());
  REQUIRE(!claimed);
  CHECK(claimed.error().os_errno == EBADF);
  CHECK(std::string(claimed.error().what).find("in use") == std::string::npos);
}

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

tier::Spec parsed(const std::string& text) {
  Result<tier::Spec> spec = tier::parse(text.c_str());
  REQUIRE(bool(spec));
  return *spec;
}

tier::Mapping mapped(const tier::Spec& spec, std::size_t bytes) {
  Result<tier::Mapping> mapping = tier::map(spec, bytes);
  REQUIRE(bool(mapping));
  return std::move(*mapping);
}

std::size_t resident(const tier::Mapping& mapping) {
  Result<os::Residency> found = os::residency(mapping.range);
  REQUIRE(bool(found));
  return found->resident_bytes;
}

} // namespace

TEST_CASE("dram is mapped untouched, and populated where asked") {
  CHECK(resident(mapped(parsed("dram,pages=4k"), mib)) == 0);
  CHECK(resident(mapped(parsed("dram,pages=4k,populate"), mib)) == mib);
}

TEST_CASE("file: and shm: leave no name behind, before or after") {
  const test::Folder folder;
  for (const std::string& text : {"file:" + folder.path(), std::string("shm:")}) {
    const tier::Mapping mapping = mapped(parsed(text), mib);
    mapping.data()[mib - 1] = std::byte{1};
    CHECK(mapping.file.fd() >= 0);
    CHECK(folder.empty());
    struct stat facts {};
    REQUIRE(fstat(mapping.file.fd(), &facts) == 0);
    CHECK(facts.st_nlink == 0);
  }
}

TEST_CASE("what does not fit is refused before anything is allocated") {
  const test::Folder folder;
  for (const std::string& text :
       {std::string("dram"), "file:" + folder.path(), std::string("shm:")}) {
    const tier::Spec spec = parsed(text);
    Result<std::size_t> room = tier::capacity(spec);
    REQUIRE(bool(room));
    // By a wide margin: the room changes while other processes run.
    Result<tier::Mapping> mapping = tier::map(spec, 2 * *room);
    REQUIRE(!mapping);
    CHECK(mapping.error().code == Errc::no_space);
    CHECK(std::string(mapping.error().what).find("bytes free") != std::string::npos);
    CHECK(std::string(mapping.error().next) != "");
    Result<std::size_t> left = tier::capacity(spec);
    REQUIRE(bool(left));
    CHECK(*left > *room / 2);
  }
}

TEST_CASE("even the largest number is refused, not wrapped around") {
  Result<tier::Mapping> mapping = tier::map(parsed("dram"), SIZE_MAX);
  REQUIRE(!mapping);
  CHECK(mapping.error().code == Errc::no_space);
}

TEST_CASE("tiers that this machine lacks are reported as such") {
  for (const char* text : {"numa:9999", "devdax:/dev/dax99.9"}) {
    Result<tier::Mapping> mapping = tier::map(parsed(text), mib);
    REQUIRE(!mapping);
    CHECK(mapping.error().code == Errc::unsupported);
    CHECK(std::string(mapping.error().next).find("nearfar topo") != std::string::npos);
  }
}

TEST_CASE("fsdax: on a file system that is not DAX is refused, nothing is left") {
  const test::Folder folder;
  Result<tier::Mapping> mapping = tier::map(parsed("fsdax:" + folder.path()), mib);
  if (mapping) {
    MESSAGE("skipped: the temporary folder lies on DAX");
    return;
  }
  CHECK(mapping.error().code == Errc::unsupported);
  CHECK(folder.empty());
}

TEST_CASE("missing and existing paths") {
  const test::Folder folder;
  Result<tier::Mapping> missing = tier::map(parsed("file:" + folder.path("no/such")), mib);
  REQUIRE(!missing);
  CHECK(missing.error().code == Errc::not_found);
  CHECK(tier::map(parsed("file:" + folder.path("mistyped")), mib).error().code == Errc::not_found);
  REQUIRE(bool(os::create_new(folder.path("there").c_str())));
  Result<tier::Mapping> existing = tier::map(parsed("file:" + folder.path("there")), mib);
  REQUIRE(!existing);
  CHECK(existing.error().code == Errc::exists);
}

TEST_CASE("pages=4k holds, and is verified") {
  const tier::Spec spec = parsed("dram,pages=4k");
  const tier::Mapping mapping = mapped(spec, 8 * mib);
  os::prefault(mapping.range);
  CHECK(bool(tier::verify_pages(spec, mapping)));
}

TEST_CASE("pages other than those asked for are found out") {
  const tier::Mapping small = mapped(parsed("dram,pages=4k"), 8 * mib);
  os::prefault(small.range);
  Status verified = tier::verify_pages(parsed("dram,pages=thp"), small);
  REQUIRE(!verified);
  CHECK(verified.error().code == Errc::failed_check);
  CHECK(std::string(verified.error().what).find("pages=thp") != std::string::npos);
}

TEST_CASE("where the kernel grants huge pages, they do not pass for 4k") {
  const tier::Spec spec = parsed("dram,pages=thp");
  const tier::Mapping huge = mapped(spec, 8 * mib);
  os::prefault(huge.range);
  if (Status granted = tier::verify_pages(spec, huge); !granted) {
    MESSAGE("skipped: " << granted.error().what);
    return;
  }
  CHECK(!tier::verify_pages(parsed("dram,pages=4k"), huge));
}

TEST_CASE("a paced tier is mapped only for those who keep its pace") {
  const tier::Spec spec = parsed("paced:dram@optane-100");
  Result<tier::Mapping> unpaced = tier::map(spec, mib);
  REQUIRE(!unpaced);
  CHECK(unpaced.error().code == Errc::unsupported);
  CHECK(std::string(unpaced.error().what).find("optane-100") != std::string::npos);
  CHECK(bool(tier::map_to_pace(spec, mib)));
}
