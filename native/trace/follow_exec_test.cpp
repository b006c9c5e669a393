#include "trace/recorder/follow_exec.hpp"

#include <doctest/doctest.h>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "test_support.hpp"

namespace {

using nearfar::trace::ExecTarget;
using nearfar::trace::Words;

std::string written(const nearfar::test::Folder& folder, const char* name, const std::string& text,
                    mode_t mode = 0755) {
  std::string path = folder.path(name);
  std::FILE* file = std::fopen(path.c_str(), "w");
  REQUIRE(file != nullptr);
  std::fputs(text.c_str(), file);
  std::fclose(file);
  REQUIRE(chmod(path.c_str(), mode) == 0);
  return path;
}

/// The program to run and its words; empty if it is not followed.
std::vector<std::string> resolved(const std::string& path, std::vector<const char*> arguments) {
  arguments.push_back(nullptr);
  Words words(arguments.data(), ExecTarget::max_words);
  ExecTarget target(path.c_str(), words);
  if (!target.resolve()) return {};
  std::vector<std::string> found{target.path()};
  for (const char** word = words.first; *word != nullptr; ++word)
    found.emplace_back(*word);
  return found;
}

} // namespace

TEST_CASE("a program for 64-bit x86 is followed as it is") {
  CHECK(resolved("/proc/self/exe", {"name", "x"}) ==
        std::vector<std::string>{"/proc/self/exe", "name", "x"});
}

TEST_CASE("a script is followed by its interpreter, as the kernel starts it") {
  const nearfar::test::Folder folder;
  const std::string plain = written(folder, "plain", "#!/bin/sh\n");
  CHECK(resolved(plain, {"name", "x"}) ==
        std::vector<std::string>{"/bin/sh", "/bin/sh", plain, "x"});
  const std::string argument = written(folder, "argument", "#! /bin/sh  -e  -u \t\n");
  CHECK(resolved(argument, {"name"}) ==
        std::vector<std::string>{"/bin/sh", "/bin/sh", "-e  -u", argument});
  const std::string nested = written(folder, "nested", "#!" + argument + " y\n");
  CHECK(resolved(nested, {"name", "x"}) ==
        std::vector<std::string>{"/bin/sh", "/bin/sh", "-e  -u", argument, "y", nested, "x"});
}

TEST_CASE("what the emulator cannot run is not followed") {
  const nearfar::test::Folder folder;
  CHECK(resolved(folder.path("missing"), {"x"}).empty());
  CHECK(resolved(folder.path(), {"x"}).empty());
  CHECK(resolved(written(folder, "text", "echo\n"), {"x"}).empty());
  CHECK(resolved(written(folder, "empty", ""), {"x"}).empty());
  CHECK(resolved(written(folder, "not_executable", "#!/bin/sh\n", 0644), {"x"}).empty());
  CHECK(resolved(written(folder, "set_user", "#!/bin/sh\n", 04755), {"x"}).empty());
  CHECK(resolved(written(folder, "endless", "#!/bin/sh"), {"x"}).empty());
  CHECK(resolved(written(folder, "nameless", "#! \n"), {"x"}).empty());
  CHECK(resolved(written(folder, "long", "#!/bin/" + std::string(300, 's') + "\n"), {"x"}).empty());
  CHECK(resolved("/bin/sh", {}).empty());
  CHECK(resolved("/bin/sh", {"sh", reinterpret_cast<const char*>(8)}).empty());
  const std::string loop = folder.path("loop");
  CHECK(resolved(written(folder, "loop", "#!" + loop + "\n"), {"x"}).empty());
}
