#include <nearfar/sim.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <doctest/doctest.h>
#include <fstream>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "test_support.hpp"

namespace {

const char* const ddr4 =
    "nearfar-device 1\nname ddr4\nkind commands\nclock 1\ntRCD 22\ntRP 22\ntRAS 52\nCL 22\nCWL 16\n"
    "burst 4\ntCCD 4\ntRRD 4\ntWTR 4\ntWR 24\ntRTP 12\ntRFC 560\ntREFI 12480\nranks 2\nbanks 4\n"
    "bank_groups 4\nrow_bytes 8192\nread_J 2e-9\n";

/// A device in a file.
struct DeviceFile {
  explicit DeviceFile(const char* text = ddr4) : path(folder.path("it.device")) {
    std::ofstream(path) << text;
  }
  nearfar::test::Folder folder;
  std::string path;
};

struct Core {
  nearfar_sim* memory = nullptr;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> done; ///< id, clock
  int in_callback = 0;                                       ///< what a call of it returned
};

void note(void* core, std::uint64_t id, std::uint64_t clock) {
  static_cast<Core*>(core)->done.emplace_back(id, clock);
}

nearfar_sim* create(Core& core, nearfar_sim_done done = note,
                    const nearfar_sim_options* options = nullptr) {
  const DeviceFile device;
  core.memory = nearfar_sim_create(device.path.c_str(), options, done, &core);
  REQUIRE_MESSAGE(core.memory, nearfar_sim_error());
  return core.memory;
}

using Options = nearfar_sim_options;

/// Options with one that is not the default.
template <class Field>
Options with(Field Options::*field, std::type_identity_t<Field> value, Options options = {}) {
  options.*field = value;
  return options;
}

bool failed(int code, const char* message) {
  return errno == code && std::strstr(nearfar_sim_error(), message);
}

void refused(const nearfar_sim_options& options, const char* message) {
  const DeviceFile device;
  CHECK(nearfar_sim_create(device.path.c_str(), &options, note, nullptr) == nullptr);
  CHECK_MESSAGE(failed(EINVAL, message), nearfar_sim_error());
}

} // namespace

TEST_CASE("a read calls back with its id at the clock at which its data arrive") {
  Core core;
  nearfar_sim* memory = create(core);
  CHECK(nearfar_sim_clock_ns(memory) == 1);
  CHECK(nearfar_sim_enqueue(memory, 0x1000, 0, 7) == 1);
  CHECK(nearfar_sim_tick(memory, 22 + 22 + 4 - 1) == 0);
  CHECK(nearfar_sim_tick(memory, 1) == 1);
  CHECK(core.done == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{7, 48}});
  CHECK(nearfar_sim_clock(memory) == 48);
  CHECK(nearfar_sim_enqueue(memory, 0x40, 1, 8) == 1);
  nearfar_sim_work activity;
  CHECK(nearfar_sim_finish(memory, &activity) == 0);
  CHECK(activity.clocks == 48);
  CHECK(activity.reads == 1);
  CHECK(activity.writes == 1);
  CHECK(activity.has_energy == 1);
  CHECK(activity.read_J == doctest::Approx(2e-9));
  CHECK(nearfar_sim_destroy(memory) == 0);
}

TEST_CASE("without a callback, completions are counted") {
  Core core;
  nearfar_sim* memory = create(core, nullptr);
  CHECK(nearfar_sim_enqueue(memory, 0, 0, 1) == 1);
  CHECK(nearfar_sim_tick(memory, 100) == 1);
  CHECK(nearfar_sim_destroy(memory) == 0);
}

TEST_CASE("full queues accept nothing") {
  Core core;
  const Options options = with(&Options::read_queue, 1);
  nearfar_sim* memory = create(core, note, &options);
  CHECK(nearfar_sim_accepts(memory, 0, 0) == 1);
  CHECK(nearfar_sim_enqueue(memory, 0, 0, 1) == 1);
  CHECK(nearfar_sim_accepts(memory, 64, 0) == 0);
  CHECK(nearfar_sim_enqueue(memory, 64, 0, 2) == 0);
  CHECK(nearfar_sim_accepts(memory, 64, 1) == 1);
  CHECK(nearfar_sim_destroy(memory) == 0);
}

TEST_CASE("the callback may enqueue, and do nothing else that changes the memory") {
  Core core;
  nearfar_sim* memory = create(core, [](void* context, std::uint64_t id, std::uint64_t) {
    Core& self = *static_cast<Core*>(context);
    self.done.emplace_back(id, nearfar_sim_clock(self.memory));
    if (id == 1) CHECK(nearfar_sim_enqueue(self.memory, 128, 0, 2) == 1);
    CHECK(nearfar_sim_tick(self.memory, 1) == -1);
    CHECK(failed(EBUSY, "nearfar_sim_tick: called by the memory's own callback"));
    CHECK(nearfar_sim_destroy(self.memory) == -1);
    nearfar_sim_work activity;
    CHECK(nearfar_sim_finish(self.memory, &activity) == -1);
    CHECK(errno == EBUSY);
  });
  CHECK(nearfar_sim_enqueue(memory, 0, 0, 1) == 1);
  CHECK(nearfar_sim_tick(memory, 1000) == 1);
  CHECK(nearfar_sim_tick(memory, 1000) == 1);
  CHECK(core.done == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 1000}, {2, 2000}});
  CHECK(nearfar_sim_destroy(memory) == 0);
}

TEST_CASE("a destroyed memory is refused by every call") {
  Core core;
  nearfar_sim* memory = create(core);
  CHECK(nearfar_sim_destroy(memory) == 0);
  CHECK(create(core) != memory); // handles are not used again
  nearfar_sim_work activity;
  const char* message = "the memory was destroyed";
  CHECK((nearfar_sim_destroy(memory) == -1 && failed(EINVAL, message)));
  CHECK((nearfar_sim_accepts(memory, 0, 0) == -1 && failed(EINVAL, message)));
  CHECK((nearfar_sim_enqueue(memory, 0, 0, 0) == -1 && failed(EINVAL, message)));
  CHECK((nearfar_sim_tick(memory, 1) == -1 && failed(EINVAL, message)));
  CHECK((nearfar_sim_finish(memory, &activity) == -1 && failed(EINVAL, message)));
  errno = 0;
  CHECK((nearfar_sim_clock(memory) == 0 && failed(EINVAL, message)));
  errno = 0;
  CHECK((nearfar_sim_clock_ns(memory) == 0 && failed(EINVAL, message)));
  CHECK(nearfar_sim_destroy(core.memory) == 0);
  CHECK(nearfar_sim_destroy(nullptr) == 0);
}

TEST_CASE("a finished memory returns its result again, and takes no requests") {
  Core core;
  nearfar_sim* memory = create(core);
  CHECK(nearfar_sim_enqueue(memory, 0, 0, 1) == 1);
  nearfar_sim_work first, second;
  CHECK(nearfar_sim_finish(memory, &first) == 0);
  CHECK(first.reads == 1);
  CHECK((nearfar_sim_enqueue(memory, 0, 0, 1) == -1 && failed(EINVAL, "has ended")));
  CHECK((nearfar_sim_accepts(memory, 0, 0) == -1 && failed(EINVAL, "has ended")));
  CHECK((nearfar_sim_tick(memory, 1) == -1 && failed(EINVAL, "has ended")));
  CHECK(nearfar_sim_finish(memory, &second) == 0);
  CHECK(second.reads == first.reads);
  CHECK(second.refreshes == first.refreshes);
  CHECK(core.done.empty());
  CHECK(nearfar_sim_destroy(memory) == 0);
}

TEST_CASE("invalid arguments are refused with the next step") {
  Core core;
  nearfar_sim* memory = create(core);
  CHECK((nearfar_sim_finish(memory, nullptr) == -1 && failed(EINVAL, "struct nearfar_sim_work")));
  CHECK((nearfar_sim_tick(memory, UINT64_MAX) == -1 && failed(EINVAL, "limit of simulated time")));
  CHECK(nearfar_sim_clock(memory) == 0);
  CHECK((nearfar_sim_tick(nullptr, 1) == -1 && failed(EINVAL, "the memory is NULL")));
  CHECK(nearfar_sim_destroy(memory) == 0);

  CHECK((nearfar_sim_create(nullptr, nullptr, note, nullptr) == nullptr &&
         failed(EINVAL, "the device file is NULL")));
  CHECK((nearfar_sim_create("ddr4-3200", nullptr, note, nullptr) == nullptr &&
         failed(ENOENT, "nearfar profile export PROFILE")));
  const DeviceFile damaged("nearfar-device 1\nname it\nkind queued\nread_latency soon\n");
  CHECK((nearfar_sim_create(damaged.path.c_str(), nullptr, note, nullptr) == nullptr &&
         failed(EINVAL, "damaged at line 4")));
  const DeviceFile profile("schema_version = 1\n");
  CHECK((nearfar_sim_create(profile.path.c_str(), nullptr, note, nullptr) == nullptr &&
         failed(EINVAL, "is not a device file")));
}

TEST_CASE("an idle time of 0 ns is not the default") {
  const Options at_once =
      with(&Options::timeout_ns, NEARFAR_SIM_AT_ONCE, with(&Options::page_policy, "timeout"));
  Core core;
  CHECK(nearfar_sim_destroy(create(core, note, &at_once)) == 0);
}

TEST_CASE("invalid options are refused by their values") {
  refused(with(&Options::page_policy, "shut"), "page policy 'shut'");
  refused(with(&Options::timeout_ns, -2), "a row is closed: -2 ns");
  refused(with(&Options::power_down_after_ns, -2), "powers down: -2 ns");
  refused(with(&Options::self_refresh_after_ns, 100), "ddr4 has no self-refresh (tXS)");
  refused(with(&Options::scheduler, "lottery"), "scheduler 'lottery'");
  refused(with(&Options::row_hit_cap, 1, with(&Options::scheduler, "fcfs")), "cap on row hits");
  refused(with(&Options::write_drain_to, 4, with(&Options::write_drain_from, 4)),
          "write drain 4:4:1");
  refused(with(&Options::write_drain_to, 40), "write drain 32:40:1");
  refused(with(&Options::write_drain_idle, 33), "write drain 32:16:33");
  refused(with(&Options::mapping, "xx"), "address mapping 'xx'");
}

TEST_CASE("error messages are per thread") {
  CHECK(nearfar_sim_tick(nullptr, 1) == -1);
  std::thread([] {
    CHECK(std::string(nearfar_sim_error()).empty());
    Core core;
    nearfar_sim* memory = create(core);
    CHECK(nearfar_sim_destroy(memory) == 0);
  }).join();
  CHECK(std::strstr(nearfar_sim_error(), "nearfar_sim_tick: the memory is NULL"));
}
