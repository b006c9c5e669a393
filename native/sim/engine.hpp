// The memory that a run drives: what an engine provides.
//
// Thread safety  one thread.
#pragma once

#include <concepts>
#include <optional>
#include <vector>

#include "sim/bank_work.hpp"
#include "sim/command.hpp"
#include "sim/completion.hpp"
#include "sim/controller.hpp"

namespace nearfar::sim {

/// One memory, simulated by an engine.
///
/// in_order   whether accesses must arrive in the order of their times
/// create     errors: those of the device
/// serve      an access arrives; its end, or nothing if step() will return it
/// post       a write whose sender does not wait; when the sender may continue, or nothing if the
///            queue is full before the next step()
/// read_for_migration  a read whose data no access waits for
/// next       when the next event of the memory is due, or `never`
/// step       processes that event; the access that it completed, if any
/// finish     completes all posted writes; the work that was done
/// banks      the work by bank; empty if the engine does not count it
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
  { engine.finish(at) } -> std::same_as<Work>;
  { engine.banks() } -> std::same_as<std::vector<BankWork>>;
};

} // namespace nearfar::sim
