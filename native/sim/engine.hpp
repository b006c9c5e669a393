// Interface of a simulated memory: what an engine provides to a run.
//
// Thread safety  one thread.
#pragma once

#include <concepts>
#include <optional>
#include <vector>

#include "sim/bank_activity.hpp"
#include "sim/command.hpp"
#include "sim/completion.hpp"
#include "sim/controller.hpp"

namespace nearfar::sim {

/// One memory, simulated by an engine.
///
/// in_order   whether accesses must be sent in order of time
/// create     creates a memory; errors: those of the device
/// serve      sends an access; returns its end, or nothing if step() will return it
/// end_of     if in_order: serve(), whose end is always known
/// post       sends a posted write; returns when the sender may continue, or nothing if the queue
///            is full and a step() is needed first
/// read_for_migration  sends a read for which no access waits
/// next       returns the time of the next event, or `never`
/// step       processes that event; returns the access that it completes, if any
/// finish     completes all posted writes; returns the activity
/// banks      returns the activity by bank; empty if the engine does not count it
template <class T>
concept MemoryEngine = requires(T engine, const Device& device, const Controller& controller,
                                std::vector<Command>* commands, std::uint64_t id, Time at,
                                std::uint64_t line, bool write) {
  { T::in_order } -> std::convertible_to<bool>;
  { T::create(device, controller, commands) } -> std::same_as<Result<T>>;
  { engine.serve(id, at, line, write) } -> std::same_as<std::optional<Time>>;
  { engine.post(at, line) } -> std::same_as<std::optional<Time>>;
  { engine.read_for_migration(at, line) } -> std::same_as<void>;
  { engine.next() } -> std::same_as<Time>;
  { engine.step() } -> std::same_as<std::optional<Completion>>;
  { engine.finish(at) } -> std::same_as<Activity>;
  { engine.banks() } -> std::same_as<std::vector<BankActivity>>;
};

} // namespace nearfar::sim
