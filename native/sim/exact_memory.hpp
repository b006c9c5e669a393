// One memory in the exact engine: channels that issue commands, or a queue (QueuedMemory) for
// devices without command timings.
//
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sim/engine.hpp"
#include "sim/exact_channel.hpp"
#include "sim/queued.hpp"

namespace nearfar::sim {

/// Channel numbers [first, end).
struct ChannelRange {
  std::uint32_t first;
  std::uint32_t end;
};

/// All or some channels of one memory, or a queue. A queue returns the end of an access from
/// serve().
class ExactMemory {
public:
  static constexpr bool in_order = false;

  static Result<ExactMemory> create(const Device& device, const Controller& controller,
                                    std::vector<Command>* commands) {
    return create(device, controller, commands,
                  {0, static_cast<std::uint32_t>(device.organization.channels)});
  }

  /// Only the channels of `range`. Requires that all accesses go to them.
  static Result<ExactMemory> create(const Device& device, const Controller& controller,
                                    std::vector<Command>* commands, ChannelRange range) {
    ExactMemory memory(device, controller, range.first);
    if (device.kind == MemoryKind::queued) {
      Result<QueuedMemory> queued = QueuedMemory::create(device);
      if (!queued) return queued.error();
      memory.queued_.emplace(std::move(*queued));
      return memory;
    }
    for (std::uint32_t i = range.first; i < range.end; ++i)
      memory.channels_.emplace_back(device, controller, i).record(commands);
    return memory;
  }

  std::optional<Time> serve(std::uint64_t id, Time at, std::uint64_t line, bool write) {
    if (queued_) return queued_->serve(at, line, write);
    const DramAddress address = decoder_.decode(line);
    channels_[address.channel - first_channel_].demand(id, at, address, write);
    return std::nullopt;
  }

  std::optional<Time> post(Time at, std::uint64_t line) {
    if (queued_) return queued_->accept(at, line);
    const DramAddress address = decoder_.decode(line);
    ExactChannel& channel = channels_[address.channel - first_channel_];
    if (!channel.has_room()) {
      waited_ = channel.next();
      return std::nullopt;
    }
    channel.post(std::max(at, waited_), address);
    return std::max(at, std::exchange(waited_, 0));
  }

  /// Whether the next post() to this line is accepted without a step().
  bool has_room(std::uint64_t line) const {
    return queued_ || channels_[decoder_.decode(line).channel - first_channel_].has_room();
  }

  void read_for_migration(Time at, std::uint64_t line) { serve(no_access, at, line, false); }

  Time next() {
    first_ = nullptr;
    Time at = never;
    for (ExactChannel& channel : channels_)
      if (channel.next() < at) {
        at = channel.next();
        first_ = &channel;
      }
    return at;
  }

  /// Processes the event that next() returned. Requires that next() was not `never`.
  std::optional<Completion> step() { return first_->step(); }

  Activity finish(Time end) {
    if (queued_) return queued_->activity();
    Activity sum;
    for (ExactChannel& channel : channels_) {
      channel.flush();
      while (channel.next() != never)
        channel.step();
      channel.finish(end);
      sum += channel.activity();
    }
    return sum;
  }

  std::vector<BankActivity> banks() const {
    std::vector<BankActivity> all;
    for (const ExactChannel& channel : channels_)
      all.insert(all.end(), channel.banks().begin(), channel.banks().end());
    return all;
  }

private:
  ExactMemory(const Device& device, const Controller& controller, std::uint32_t first_channel)
      : decoder_(device.organization, controller.mapping), first_channel_(first_channel) {}

  AddressDecoder decoder_;
  std::uint32_t first_channel_;
  std::vector<ExactChannel> channels_;
  std::optional<QueuedMemory> queued_;
  ExactChannel* first_ = nullptr; ///< channel of the next event
  Time waited_ = 0; ///< time of the event that made room for the posted write that waits; else 0
};

} // namespace nearfar::sim
