#include "sim/device_file.hpp"

#include <cstring>
#include <fstream>

#include "sim/test_devices.hpp"
#include "test_support.hpp"

using namespace nearfar;
using namespace nearfar::sim;

namespace {

std::string text_of(const Figures& figures) {
  std::string text = "nearfar-device 1\n# a comment\nname of two words\nkind commands\n\n";
  for (const auto& [name, value] : figures)
    text += name + " " + std::to_string(value) + "\n";
  return text;
}

void refused(const std::string& text, const char* what) {
  const Result<Device> device = parse_device(text, "it");
  CAPTURE(text);
  REQUIRE(!device);
  CHECK(device.error().code == Errc::bad_input);
  CHECK_MESSAGE(std::strstr(device.error().what, what), device.error().what);
  CHECK(device.error().next[0] != '\0');
}

} // namespace

TEST_CASE("a device file has the figures of make_device") {
  Result<Device> device = parse_device(text_of(pcm_figures()), "it");
  REQUIRE_MESSAGE(device, device.error().what);
  CHECK(device->name == "of two words");
  CHECK(device->kind == MemoryKind::commands);
  const Timing expected = pcm().timing;
  CHECK(std::memcmp(&device->timing, &expected, sizeof expected) == 0);
  CHECK(!device->energy.known);
  CHECK(parse_device(text_of(ddr4_figures()), "it"));
}

TEST_CASE("a damaged device file is refused by its line") {
  const std::string sound = text_of(pcm_figures());
  refused("", "it is not a device file");
  refused("schema_version = 1\n", "it is not a device file");
  refused("nearfar-device 2\nkind queued\n", "it is not a device file");
  refused("nearfar-device 1\nname it\n", "no name or no kind");
  refused("nearfar-device 1\nname it\nkind tape\n", "the kind is not");
  refused("nearfar-device 1\nname it\nclock fast\n", "line 3: invalid number");
  refused("nearfar-device 1\nname it\nclock 1 ns\n", "line 3: invalid number");
  refused("nearfar-device 1\nname it\nclock\n", "line 3: invalid number");
  refused(sound + "clock 1\n", "duplicate figure");
  refused(sound + "kind queued\n", "duplicate key");
  refused(sound + "tXYZ 1\n", "tXYZ");
  refused(sound + "tRFC nan\n", "tRFC");
}

TEST_CASE("a path that is not a device file is refused") {
  const test::Folder folder;
  const std::string path = folder.path("it.device");
  CHECK(read_device(path.c_str()).error().code == Errc::not_found);
  CHECK(std::strstr(read_device(path.c_str()).error().next, "nearfar profile export"));
  CHECK(read_device(folder.path().c_str()).error().code == Errc::bad_input);
  std::ofstream(path) << text_of(pcm_figures());
  CHECK(read_device(path.c_str()));
  std::ofstream(path, std::ios::app) << std::string(1 << 16, '#');
  CHECK(std::strstr(read_device(path.c_str()).error().what, "more than 64 KiB"));
}
