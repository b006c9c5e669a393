#include "tier/spec.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace nearfar;
using os::PageSize;

namespace {

tier::Spec parsed(const std::string& text) {
  Result<tier::Spec> spec = tier::parse(text.c_str());
  REQUIRE_MESSAGE(bool(spec), text);
  return *spec;
}

std::string kind_of(const std::string& text) { return parsed(text).kind->name; }

/// The error message of a text that must be refused; it must contain the grammar.
std::string complaint(const std::string& text) {
  Result<tier::Spec> spec = tier::parse(text.c_str());
  REQUIRE_MESSAGE(!spec, text);
  CHECK(spec.error().code == Errc::bad_input);
  CHECK(std::string(spec.error().next).find("dram, numa:N") != std::string::npos);
  return spec.error().what;
}

} // namespace

TEST_CASE("all kinds") {
  CHECK(kind_of("dram") == "dram");
  CHECK(kind_of("numa:0") == "numa");
  CHECK(parsed("numa:0").node == 0);
  CHECK(parsed("numa:12").node == 12);
  CHECK(kind_of("fsdax:/mnt/pmem") == "fsdax");
  CHECK(std::string(parsed("fsdax:/mnt/pmem").path) == "/mnt/pmem");
  CHECK(kind_of("devdax:/dev/dax0.1") == "devdax");
  CHECK(std::string(parsed("devdax:/dev/dax0.1").path) == "/dev/dax0.1");
  CHECK(kind_of("shm:/run/shm") == "shm");
  CHECK(std::string(parsed("shm:/run/shm").path) == "/run/shm");
  CHECK(kind_of("file:relative/name") == "file");
  CHECK(std::string(parsed("file:relative/name").path) == "relative/name");
}

TEST_CASE("shm: without a folder is /dev/shm") {
  CHECK(std::string(parsed("shm:").path) == "/dev/shm");
  CHECK(std::string(parsed("shm:,pages=thp").path) == "/dev/shm");
}

TEST_CASE("a path may hold colons") { CHECK(std::string(parsed("file:/a:b").path) == "/a:b"); }

TEST_CASE("options, alone and together") {
  CHECK(parsed("dram").pages == PageSize::system);
  CHECK(!parsed("dram").populate);
  CHECK(parsed("dram,pages=4k").pages == PageSize::small_4k);
  CHECK(parsed("dram,pages=2m").pages == PageSize::huge_2m);
  CHECK(parsed("dram,pages=1g").pages == PageSize::huge_1g);
  CHECK(parsed("dram,pages=thp").pages == PageSize::transparent_huge);
  CHECK(parsed("dram,populate").populate);
  const tier::Spec spec = parsed("numa:3,populate,pages=thp");
  CHECK(spec.node == 3);
  CHECK(spec.populate);
  CHECK(spec.pages == PageSize::transparent_huge);
}

TEST_CASE("unknown kinds") {
  CHECK(complaint("") == "unknown tier ''");
  CHECK(complaint("ram") == "unknown tier 'ram'");
  CHECK(complaint("DRAM") == "unknown tier 'DRAM'");
  CHECK(complaint(" dram") == "unknown tier ' dram'");
  CHECK(complaint(",populate") == "unknown tier ',populate'");
}

TEST_CASE("arguments that a kind does not take, or lacks") {
  CHECK(complaint("dram:") == "dram takes no argument, but was given ''");
  CHECK(complaint("dram:0") == "dram takes no argument, but was given '0'");
  for (const char* text : {"numa", "numa:", "numa:x", "numa:-1", "numa:1.5", "numa:99999"})
    CHECK(complaint(text).find("not a NUMA node number") == 0);
  for (const char* text : {"fsdax", "fsdax:", "devdax:", "file:", "file:,populate"})
    CHECK(complaint(text).find("a path is missing after") == 0);
}

TEST_CASE("unknown options and page sizes") {
  CHECK(complaint("dram,") == "unknown tier option ''");
  CHECK(complaint("dram,,populate") == "unknown tier option ''");
  CHECK(complaint("dram,populated") == "unknown tier option 'populated'");
  CHECK(complaint("dram,page=4k") == "unknown tier option 'page=4k'");
  CHECK(complaint("dram,pages=") == "unknown page size ''");
  CHECK(complaint("dram,pages=3k") == "unknown page size '3k'");
}

TEST_CASE("a path as long as fits is taken, a longer one refused") {
  const std::string longest(sizeof(tier::Spec::path) - 1, 'p');
  CHECK(std::string(parsed("file:" + longest).path) == longest);
  CHECK(complaint("file:" + longest + "p").find("path too long") == 0);
}

TEST_CASE("kinds have the names of the grammar") {
  for (const char* name : {"dram", "numa:0", "fsdax:/p", "devdax:/p", "shm:/p", "file:/p"}) {
    const std::string text(name);
    CHECK(kind_of(text) == text.substr(0, text.find(':')));
  }
}

TEST_CASE("paced: keeps the tier behind it, its options, and the name of the profile") {
  const tier::Spec dram = parsed("paced:dram@optane-100,pages=thp");
  CHECK(dram.kind == &tier::dram_kind);
  CHECK(dram.paced());
  CHECK(std::string(dram.profile) == "optane-100");
  CHECK(dram.pages == PageSize::transparent_huge);
  const tier::Spec file = parsed("paced:file:/a@b:c@./my.toml");
  CHECK(std::string(file.path) == "/a@b:c");
  CHECK(std::string(file.profile) == "./my.toml");
  CHECK(!parsed("file:/a@b").paced());
  CHECK(complaint("paced:dram").find("device profile is missing") != std::string::npos);
  CHECK(complaint("paced:dram@").find("device profile is missing") != std::string::npos);
  CHECK(complaint("paced:ram@optane-100").find("unknown tier") != std::string::npos);
  CHECK(complaint("paced:paced:dram@a@b").find("unknown tier") != std::string::npos);
  CHECK(complaint("paced:dram@" + std::string(300, 'x')).find("too long") != std::string::npos);
}

TEST_CASE("the same memory, whatever its pages") {
  CHECK(tier::same_memory(parsed("dram"), parsed("dram,pages=4k,populate")));
  CHECK(!tier::same_memory(parsed("dram"), parsed("paced:dram@a")));
  CHECK(!tier::same_memory(parsed("paced:dram@b"), parsed("paced:dram@a")));
  CHECK(!tier::same_memory(parsed("file:/a"), parsed("file:/b")));
}
