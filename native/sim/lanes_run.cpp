#include <array>

#include "base/parallel_for.hpp"
#include "sim/feed.hpp"
#include "sim/lane_scheduler.hpp"
#include "sim/run_statistics.hpp"
#include "sim/runs.hpp"

namespace nearfar::sim {

namespace {

/// Capacity of a channel's queue: the accesses from which the scheduler chooses.
constexpr std::size_t queue_capacity = 64;

/// The lanes of one memory.
class LanedMemory {
public:
  static Result<LanedMemory> create(const Device& device, const Controller& controller,
                                    std::vector<Command>* commands) {
    const bool coupled = device.kind == MemoryKind::queued || device.link.present();
    const auto channels = static_cast<std::uint32_t>(device.organization.channels);
    LanedMemory memory(device, controller, coupled ? 1 : channels, commands);
    for (std::uint32_t i = 0; i < memory.recorded_.size(); ++i) {
      const ChannelRange range = coupled ? ChannelRange{0, channels} : ChannelRange{i, i + 1};
      Result<ExactMemory> made =
          ExactMemory::create(device, controller, commands ? &memory.recorded_[i] : nullptr, range);
      if (!made) return made.error();
      memory.lanes_.emplace_back(std::move(*made), device.link,
                                 queue_capacity * (range.end - range.first));
    }
    return memory;
  }

  void add(const LaneRequest& request) {
    const std::uint32_t lane = lanes_.size() > 1 ? decoder_.decode(request.line).channel : 0;
    lanes_[lane].add(request);
  }
  std::vector<Lane>& lanes() { return lanes_; }

  std::vector<BankActivity> banks() const {
    std::vector<BankActivity> all;
    for (const Lane& lane : lanes_) {
      const std::vector<BankActivity> banks = lane.banks();
      all.insert(all.end(), banks.begin(), banks.end());
    }
    return all;
  }
  /// Appends the recorded commands of all lanes to the vector of the setup.
  void pass_commands() const {
    if (!commands_) return;
    for (const std::vector<Command>& lane : recorded_)
      commands_->insert(commands_->end(), lane.begin(), lane.end());
  }

private:
  LanedMemory(const Device& device, const Controller& controller, std::size_t lanes,
              std::vector<Command>* commands)
      : decoder_(device.organization, controller.mapping), recorded_(lanes), commands_(commands) {}

  AddressDecoder decoder_;
  std::vector<std::vector<Command>> recorded_; ///< by lane
  std::vector<Command>* commands_;
  std::vector<Lane> lanes_;
};

/// Reads the next batch of requests while the lanes simulate the current one.
class LanesRun {
public:
  LanesRun(const Setup& setup, LanedMemory far, LanedMemory near, Placer placer)
      : setup_(setup), memories_{std::move(far), std::move(near)}, placer_(std::move(placer)) {
    for (LanedMemory& memory : memories_)
      for (Lane& lane : memory.lanes())
        lanes_.push_back(&lane);
  }
  LanesRun(const LanesRun&) = delete;
  LanesRun& operator=(const LanesRun&) = delete;

  Result<Outcome> run(RequestSource& source) {
    std::uint64_t left = setup_.max_requests;
    for (bool more = true; more;) {
      Result<std::uint64_t> fed = std::uint64_t{0};
      const std::uint64_t most = std::min(left, requests_ahead);
      LaneScheduler scheduler(lanes_);
      parallel_for_after([&] { fed = feed(source, placer_, most, *this); }, setup_.threads,
                         setup_.threads, [&](std::size_t) { scheduler.run(); });
      if (!fed) return fed.error();
      statistics_.add_requests(*fed);
      left -= *fed;
      more = *fed > 0;
      for (Lane* lane : lanes_)
        lane->next_batch();
    }
    return finish(source.tail());
  }

  Time now() const { return now_; }
  void stall(Time time) {
    statistics_.stalled(time);
    now_ += time;
  }
  void move(const PlacedAccess& placed) {
    if (placed.write) statistics_.written(placed.near, placed.line);
    add(placed, placed.write ? LaneRequestType::posted_write : LaneRequestType::migration_read);
  }
  void expect_write(const PlacedAccess& placed) {
    statistics_.prefetch_wear(placed.near, placed.line);
  }
  void issue(const Request& request, const PlacedAccess& placed) {
    now_ += request.gap;
    statistics_.request(placed.near, request.write, request.gap);
    if (placed.write) statistics_.written(placed.near, placed.line);
    const LaneRequestType write =
        setup_.core.posted_writes ? LaneRequestType::posted_write : LaneRequestType::write;
    add(placed, placed.write ? write : LaneRequestType::read);
  }

private:
  static constexpr std::uint64_t requests_ahead = 1u << 16;

  void add(const PlacedAccess& placed, LaneRequestType type) {
    memories_[placed.near].add({now_, placed.line, type});
  }

  Result<Outcome> finish(Time tail) {
    parallel_for_after([] {}, lanes_.size(), setup_.threads,
                       [&](std::size_t i) { lanes_[i]->drain(); });
    for (unsigned near = 0; near < 2; ++near)
      for (const Lane& lane : memories_[near].lanes())
        statistics_.add(near, lane.times());
    now_ += tail;
    const Time end = statistics_.finish(now_, tail, placer_.moved_pages());
    std::vector<Activity> activities(lanes_.size());
    parallel_for_after([] {}, lanes_.size(), setup_.threads,
                       [&](std::size_t i) { activities[i] = lanes_[i]->finish(end); });
    const Device* devices[2] = {&setup_.far, &setup_.near};
    auto activity = activities.begin();
    for (unsigned near = 0; near < 2; ++near) {
      Activity sum;
      for (std::size_t i = 0; i < memories_[near].lanes().size(); ++i)
        sum += *activity++;
      memories_[near].pass_commands();
      statistics_.finish_tier(near, *devices[near], sum, memories_[near].banks());
    }
    return std::move(statistics_).outcome();
  }

  const Setup& setup_;
  std::array<LanedMemory, 2> memories_; ///< far, near
  std::vector<Lane*> lanes_;            ///< of both memories
  Placer placer_;
  RunStatistics statistics_;
  Time now_ = 0;
};

} // namespace

Result<Outcome> run_lanes(RequestSource& source, const Setup& setup) {
  Result<LanedMemory> far = LanedMemory::create(setup.far, setup.far_controller, setup.commands[0]);
  if (!far) return far.error();
  Result<LanedMemory> near =
      LanedMemory::create(setup.near, setup.near_controller, setup.commands[1]);
  if (!near) return near.error();
  Result<Placer> placer = Placer::create(setup.plan, source.physical());
  if (!placer) return placer.error();
  return LanesRun(setup, std::move(*far), std::move(*near), std::move(*placer)).run(source);
}

} // namespace nearfar::sim
