// C interface of a memory in the exact engine.
//
// Handles        are never freed. After nearfar_sim_destroy() a handle is empty, so that its later
//                use is detected.
// Exceptions     bad_alloc and length_error of the standard library. They are caught here.
#include <nearfar/sim.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <vector>

#include "sim/cosimulation.hpp"
#include "sim/device_file.hpp"

using namespace nearfar;
using namespace nearfar::sim;

namespace {

struct Simulation {
  Cosimulation memory;
  nearfar_sim_done done;
  void* context;
  std::vector<Completion> completed; ///< in the current tick
  bool in_callback = false;
  bool out_of_memory = false; ///< an operation was interrupted: the state is inconsistent
};

} // namespace

struct nearfar_sim {
  std::unique_ptr<Simulation> simulation;
};

namespace {

constexpr unsigned default_read_queue = 32;

struct Handles {
  std::mutex mutex;
  std::deque<nearfar_sim> all; ///< a deque: addresses do not change
};

/// Not destroyed at exit: destructors of the program may use a memory.
Handles& handles() {
  static auto* const made = new Handles;
  return *made;
}

thread_local char last_message[sizeof(Error::what) + sizeof(Error::next)] = "";

[[gnu::format(printf, 2, 3)]] void set_error(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_message, sizeof last_message, format, arguments);
  va_end(arguments);
  errno = code;
}

int errno_of(const Error& error) {
  switch (error.code) {
  case Errc::bad_input: return EINVAL;
  case Errc::not_found: return ENOENT;
  case Errc::no_permission: return EACCES;
  case Errc::no_space: return ENOMEM;
  default: return error.os_errno != 0 ? error.os_errno : EIO;
  }
}

void set_error(const Error& error) {
  set_error(errno_of(error), error.next[0] != '\0' ? "%s; %s" : "%s%s", error.what, error.next);
}

/// Returns the simulation of a handle; null, and sets the error, for an invalid handle.
Simulation* simulation_of(nearfar_sim* memory, const char* call) {
  if (memory == nullptr) {
    set_error(EINVAL, "%s: the memory is NULL; create it with nearfar_sim_create()", call);
    return nullptr;
  }
  if (!memory->simulation)
    set_error(EINVAL, "%s: the memory was destroyed; create another one", call);
  return memory->simulation.get();
}

/// As simulation_of(); an error after an operation ran out of memory.
Simulation* usable(nearfar_sim* memory, const char* call) {
  Simulation* found = simulation_of(memory, call);
  if (found && found->out_of_memory) {
    set_error(ENOMEM, "%s: an earlier call ran out of host memory; destroy the simulated memory",
              call);
    return nullptr;
  }
  return found;
}

/// As usable(); an error after nearfar_sim_finish().
Simulation* running(nearfar_sim* memory, const char* call) {
  Simulation* found = usable(memory, call);
  if (found && found->memory.finished()) {
    set_error(EINVAL, "%s: the simulation has ended; create another memory", call);
    return nullptr;
  }
  return found;
}

/// Returns true, and sets the error, if the caller is the callback of this memory.
bool refuse_in_callback(const Simulation& simulation, const char* call) {
  if (simulation.in_callback)
    set_error(EBUSY, "%s: called by the memory's own callback; call it after nearfar_sim_tick()",
              call);
  return simulation.in_callback;
}

/// Runs `call`. Returns false, and sets the error, if host memory is exhausted.
template <class Call>
bool within_memory(const Call& call) {
  try {
    call();
    return true;
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) { // more elements than a vector can have
  }
  set_error(ENOMEM, "out of host memory; create fewer simulated memories");
  return false;
}

/// Runs `call` on a simulation, which is not usable after a failure.
template <class Call>
bool within_memory(Simulation& simulation, const Call& call) {
  simulation.out_of_memory = !within_memory(call);
  return !simulation.out_of_memory;
}

/// An idle time that is not the default, in ns.
double idle_ns(double option) { return option == NEARFAR_SIM_AT_ONCE ? 0 : option; }

ControllerSettings settings_of(const nearfar_sim_options& options) {
  ControllerSettings settings;
  if (options.page_policy) settings.page_policy = options.page_policy;
  if (options.timeout_ns != 0) settings.timeout_ns = idle_ns(options.timeout_ns);
  if (options.scheduler) settings.scheduler = options.scheduler;
  settings.row_hit_cap = options.row_hit_cap;
  if (options.write_drain_from != 0) {
    settings.drain_from = options.write_drain_from;
    settings.drain_to = options.write_drain_to;
  } else if (options.write_drain_to != 0) {
    settings.drain_to = options.write_drain_to;
  } // if both are 0, the defaults
  if (options.write_drain_idle != 0) settings.drain_idle = options.write_drain_idle;
  if (options.mapping) settings.mapping = options.mapping;
  if (options.power_down_after_ns != 0)
    settings.power_down_after_ns = idle_ns(options.power_down_after_ns);
  if (options.self_refresh_after_ns != 0)
    settings.self_refresh_after_ns = idle_ns(options.self_refresh_after_ns);
  return settings;
}

Result<Cosimulation> make_memory(const char* device_file, const nearfar_sim_options& options) {
  Result<Device> device = read_device(device_file);
  if (!device) return device.error();
  Result<Controller> controller = make_controller(settings_of(options));
  if (!controller) return controller.error();
  const unsigned read_queue = options.read_queue ? options.read_queue : default_read_queue;
  return Cosimulation::create(*device, *controller, read_queue);
}

nearfar_sim* add_handle(Cosimulation memory, nearfar_sim_done done, void* context) {
  auto simulation = std::make_unique<Simulation>(Simulation{std::move(memory), done, context, {}});
  const std::lock_guard lock(handles().mutex);
  return &handles().all.emplace_back(nearfar_sim{std::move(simulation)});
}

} // namespace

nearfar_sim* nearfar_sim_create(const char* device_file, const nearfar_sim_options* options,
                                nearfar_sim_done done, void* context) noexcept {
  if (device_file == nullptr) {
    set_error(EINVAL, "nearfar_sim_create: the device file is NULL; name a file that `nearfar "
                      "profile export` has written");
    return nullptr;
  }
  nearfar_sim* handle = nullptr;
  within_memory([&] {
    Result<Cosimulation> memory =
        make_memory(device_file, options ? *options : nearfar_sim_options{});
    if (memory)
      handle = add_handle(std::move(*memory), done, context);
    else
      set_error(memory.error());
  });
  return handle;
}

int nearfar_sim_destroy(nearfar_sim* memory) noexcept {
  if (memory == nullptr) return 0;
  Simulation* simulation = simulation_of(memory, "nearfar_sim_destroy");
  if (!simulation || refuse_in_callback(*simulation, "nearfar_sim_destroy")) return -1;
  memory->simulation.reset();
  return 0;
}

int nearfar_sim_accepts(nearfar_sim* memory, uint64_t address, int write) noexcept {
  Simulation* simulation = running(memory, "nearfar_sim_accepts");
  if (!simulation) return -1;
  return simulation->memory.accepts(address, write != 0);
}

int nearfar_sim_enqueue(nearfar_sim* memory, uint64_t address, int write, uint64_t id) noexcept {
  Simulation* simulation = running(memory, "nearfar_sim_enqueue");
  if (!simulation) return -1;
  bool accepted = false;
  if (!within_memory(*simulation,
                     [&] { accepted = simulation->memory.enqueue(id, address, write != 0); }))
    return -1;
  return accepted;
}

int nearfar_sim_tick(nearfar_sim* memory, uint64_t clocks) noexcept {
  Simulation* simulation = running(memory, "nearfar_sim_tick");
  if (!simulation || refuse_in_callback(*simulation, "nearfar_sim_tick")) return -1;
  simulation->completed.clear();
  bool ticked = false;
  if (!within_memory(*simulation,
                     [&] {
                       Status done = simulation->memory.tick(clocks, simulation->completed);
                       if (!done) set_error(done.error());
                       ticked = static_cast<bool>(done);
                     }) ||
      !ticked)
    return -1;
  if (simulation->done) {
    simulation->in_callback = true;
    for (const Completion& read : simulation->completed)
      simulation->done(simulation->context, read.id, simulation->memory.clock_at(read.at));
    simulation->in_callback = false;
  }
  return static_cast<int>(std::min<std::size_t>(simulation->completed.size(), INT_MAX));
}

uint64_t nearfar_sim_clock(nearfar_sim* memory) noexcept {
  const Simulation* simulation = usable(memory, "nearfar_sim_clock");
  return simulation ? simulation->memory.clock() : 0;
}

double nearfar_sim_clock_ns(nearfar_sim* memory) noexcept {
  const Simulation* simulation = usable(memory, "nearfar_sim_clock_ns");
  return simulation ? static_cast<double>(simulation->memory.clock_ps()) / 1000 : 0;
}

int nearfar_sim_finish(nearfar_sim* memory, nearfar_sim_work* work) noexcept {
  Simulation* simulation = usable(memory, "nearfar_sim_finish");
  if (!simulation || refuse_in_callback(*simulation, "nearfar_sim_finish")) return -1;
  if (work == nullptr) {
    set_error(EINVAL, "nearfar_sim_finish: the place for the result is NULL; pass a struct "
                      "nearfar_sim_work");
    return -1;
  }
  return within_memory(*simulation,
                       [&] {
                         const auto& [counts, energy] = simulation->memory.finish();
                         *work = {simulation->memory.clock(),
                                  counts.reads,
                                  counts.writes,
                                  counts.row_hits,
                                  counts.activates,
                                  counts.refreshes,
                                  simulation->memory.device().energy.known,
                                  energy.activate,
                                  energy.array_write,
                                  energy.read,
                                  energy.write,
                                  energy.refresh,
                                  energy.background};
                       })
             ? 0
             : -1;
}

const char* nearfar_sim_error(void) noexcept { return last_message; }
