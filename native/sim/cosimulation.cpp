#include "sim/cosimulation.hpp"

namespace nearfar::sim {

namespace {

/// Refuses a power state that the device does not have.
Status check_states(const Device& device, const Controller& controller) {
  const bool powers_down = controller.power_down_after != never;
  const bool refreshes = controller.self_refresh_after != never;
  const char* state = nullptr;
  if (powers_down && device.timing.tXP == 0)
    state = "power-down (tXP)";
  else if (refreshes && device.timing.tXS == 0)
    state = "self-refresh (tXS)";
  if (!state) return Done{};
  return Error::make(Errc::bad_input, "%s has no %s", device.name.c_str(), state)
      .try_next("omit the setting, or choose a device with this state, such as ddr4-3200");
}

constexpr Time clock_without_commands = 1000;
/// Limit of the current time. Times of requests may be later; half of the range remains for them.
constexpr Time max_time = Time{1} << 62;
constexpr Time ps_per_day = Time{86'400} * 1'000'000'000'000;

} // namespace

Result<Cosimulation> Cosimulation::create(const Device& device, const Controller& controller,
                                          unsigned read_queue) {
  if (read_queue == 0)
    return Error::make(Errc::bad_input, "invalid read queue 0: it would accept no reads")
        .try_next("give 1 or more");
  if (Status checked = check(controller); !checked) return checked.error();
  if (Status checked = check_states(device, controller); !checked) return checked.error();
  Result<ExactMemory> memory = ExactMemory::create(device, controller, nullptr);
  if (!memory) return memory.error();
  return Cosimulation(device, controller, std::move(*memory), read_queue);
}

Cosimulation::Cosimulation(const Device& device, const Controller& controller, ExactMemory memory,
                           unsigned read_queue)
    : memory_(std::move(memory)), decoder_(device.organization, controller.mapping),
      link_(device.link),
      clock_(device.timing.clock ? device.timing.clock : clock_without_commands), device_(device),
      read_queue_(read_queue), reading_(device.organization.channels) {}

bool Cosimulation::accepts(std::uint64_t address, bool write) const {
  const std::uint64_t line = address >> line_shift;
  if (finished_) return false;
  if (write) return writable_ <= now_ && memory_.has_room(line);
  return reading_[decoder_.decode(line).channel] < read_queue_ && !link_.full();
}

bool Cosimulation::enqueue(std::uint64_t id, std::uint64_t address, bool write) {
  if (!accepts(address, write)) return false;
  const std::uint64_t line = address >> line_shift;
  if (write) {
    const Time at = link_.present() ? link_.down(now_, true, nullptr) : now_;
    writable_ = now_ + *memory_.post(at, line) - at; // > now_ only if a buffer is full
    return true;
  }
  std::uint64_t number = reads_.size();
  if (unused_.empty()) {
    reads_.emplace_back();
  } else {
    number = unused_.back();
    unused_.pop_back();
  }
  reads_[number] = {id, decoder_.decode(line).channel, 0};
  ++reading_[reads_[number].channel];
  const Time at = link_.present() ? link_.down(now_, false, &reads_[number].place) : now_;
  if (const std::optional<Time> end = memory_.serve(number, at, line, false); end)
    end_read(number, *end);
  return true;
}

void Cosimulation::end_read(std::uint64_t read, Time at) {
  if (link_.present()) at = link_.up(at, false, reads_[read].place);
  arriving_.push({read, at});
}

Status Cosimulation::tick(std::uint64_t clocks, std::vector<Completion>& completed) {
  if (clocks > (max_time - now_) / clock_)
    return Error::make(Errc::bad_input, "%llu more clocks exceed the limit of simulated time",
                       static_cast<unsigned long long>(clocks))
        .try_next("advance less: a simulation has at most %llu days",
                  static_cast<unsigned long long>(max_time / ps_per_day));
  now_ += clocks * clock_;
  while (memory_.next() < now_)
    if (const std::optional<Completion> done = memory_.step(); done) end_read(done->id, done->at);
  while (!arriving_.empty() && arriving_.top().at <= now_) {
    const auto [read, at] = arriving_.top();
    arriving_.pop();
    --reading_[reads_[read].channel];
    unused_.push_back(read);
    completed.push_back({reads_[read].id, at});
  }
  return Done{};
}

const Cosimulation::Finished& Cosimulation::finish() {
  if (!finished_) {
    const Activity activity = memory_.finish(now_);
    finished_ = {activity, energy_of(device_, activity, now_)};
  }
  return *finished_;
}

} // namespace nearfar::sim
