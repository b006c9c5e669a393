// Fuzzes device files: the raw input, and valid devices of both kinds in which the input replaces
// figures. Accepted devices are simulated.
#include <string>
#include <utility>

#include "fuzz_target.hpp"
#include "sim/cosimulation.hpp"
#include "sim/device_file.hpp"

using namespace nearfar::sim;

namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

const Lines commands = {{"kind", "commands"},
                        {"name", "it"},
                        {"clock", "0.625"},
                        {"tRCD", "13.75"},
                        {"tRP", "13.75"},
                        {"tRAS", "32.5"},
                        {"CL", "13.75"},
                        {"CWL", "10"},
                        {"burst", "2.5"},
                        {"tCCD", "2.5"},
                        {"tRRD", "2.5"},
                        {"tWTR", "2.5"},
                        {"tWR", "15"},
                        {"tRTP", "7.5"},
                        {"tRFC", "350"},
                        {"tREFI", "7800"},
                        {"channels", "2"},
                        {"ranks", "2"},
                        {"bank_groups", "4"},
                        {"banks", "4"},
                        {"row_bytes", "8192"},
                        {"refresh_sets", "1"},
                        {"link_bandwidth", "32e9"},
                        {"link_queue_depth", "8"},
                        {"activate_J", "1e-9"}};
const Lines queued = {{"kind", "queued"},         {"name", "it"},
                      {"read_latency", "300"},    {"write_latency", "100"},
                      {"read_bandwidth", "7e9"},  {"write_bandwidth", "2e9"},
                      {"both_bandwidth", "8e9"},  {"access_unit_bytes", "256"},
                      {"buffer0_bytes", "16384"}, {"buffer0_entry_bytes", "256"},
                      {"buffer0_latency", "170"}, {"link_bandwidth", "32e9"},
                      {"link_latency", "100"}};
constexpr const char* values[] = {"0",   "1",   "2",    "4",     "64",     "0.001", "0.5",
                                  "22",  "560", "1e3",  "1e6",   "65536",  "1e9",   "-1",
                                  "nan", "inf", "1e14", "1e300", "1e-300", "x",     ""};

void simulate(std::string_view text) {
  nearfar::Result<Device> device = parse_device(text, "input");
  if (!device) return;
  nearfar::Result<Cosimulation> memory = Cosimulation::create(*device, {}, 4);
  if (!memory) return;
  std::vector<Completion> done;
  for (std::uint64_t i = 0; i < 64; ++i) {
    static_cast<void>(memory->enqueue(i, i * 4160, i % 3 == 0));
    static_cast<void>(memory->tick(16, done));
  }
  static_cast<void>(memory->finish());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string head = "nearfar-device 1\n";
  const std::string_view raw(reinterpret_cast<const char*>(data), size);
  simulate(raw);
  simulate(head + std::string(raw));
  nearfar::fuzz::Choices choices(data, size);
  Lines lines = choices.take<std::uint8_t>() % 2 ? commands : queued;
  for (unsigned changes = choices.take<std::uint8_t>() % 5; changes > 0; --changes) {
    auto& line = lines[choices.take<std::uint8_t>() % lines.size()];
    line.second = values[choices.take<std::uint8_t>() % std::size(values)];
  }
  std::string text = head;
  for (const auto& [key, value] : lines)
    text += key + " " + value + "\n";
  simulate(text);
  return 0;
}
