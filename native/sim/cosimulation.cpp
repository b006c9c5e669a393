#include "sim/cosimulation.hpp"

namespace nearfar::sim {

namespace {

constexpr Time clock_without_commands = 1000;

} // namespace

Result<Cosimulation> Cosimulation::create(const Device& device, const Controller& controller,
                                          unsigned read_queue) {
  if (read_queue == 0)
    return Error::make(Errc::bad_input, "a memory without a read queue takes no reads")
        .try_next("give a read queue of at least 1");
  if (Status checked = check(controller); !checked) return checked.error();
  Result<ExactMemory> memory = ExactMemory::create(device, controller, nullptr);
  if (!memory) return memory.error();
  return Cosimulation(device, controller, std::move(*memory), read_queue);
}

Cosimulation::Cosimulation(const Device& device, const Controller& controller, ExactMemory memory,
                           unsigned read_queue)
    : memory_(std::move(memory)), decoder_(device.shape, controller.mapping), link_(device.link),
      clock_(device.timing.clock ? device.timing.clock : clock_without_commands), device_(device),
      read_queue_(read_queue), reading_(device.shape.channels) {}

bool Cosimulation::accepts(std::uint64_t address, bool write) const {
  const std::uint64_t line = address >> line_shift;
  if (finished_) return false;
  if (write) return memory_.has_room(line);
  return reading_[decoder_.place(line).channel] < read_queue_ && !link_.full();
}

bool Cosimulation::enqueue(std::uint64_t id, std::uint64_t address, bool write) {
  if (!accepts(address, write)) return false;
  const std::uint64_t line = address >> line_shift;
  if (write) {
    memory_.post(link_.present() ? link_.down(now_, true, nullptr) : now_, line);
    return true;
  }
  std::uint64_t number = reads_.size();
  if (unused_.empty()) {
    reads_.emplace_back();
  } else {
    number = unused_.back();
    unused_.pop_back();
  }
  reads_[number] = {id, decoder_.place(line).channel, 0};
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

void Cosimulation::tick(std::uint64_t clocks, std::vector<Completion>& completed) {
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
}

const Cosimulation::Finished& Cosimulation::finish() {
  if (!finished_) {
    const Work work = memory_.finish(now_);
    finished_ = {work, energy_of(device_, work, now_)};
  }
  return *finished_;
}

} // namespace nearfar::sim
