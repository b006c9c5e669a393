#include "sim/fast_banks.hpp"
#include "sim/queued.hpp"
#include "sim/run.hpp"
#include "sim/runs.hpp"

namespace nearfar::sim {

namespace {

/// One memory of the fast engine. Returns the end of each access when it is sent.
class FastMemory {
public:
  static constexpr bool in_order = true;

  static Result<FastMemory> create(const Device& device, const Controller& controller,
                                   std::vector<Command>* /*no commands are issued*/) {
    FastMemory memory;
    if (device.kind == MemoryKind::commands) {
      memory.banks_.emplace(device, controller);
    } else {
      Result<QueuedMemory> queued = QueuedMemory::create(device);
      if (!queued) return queued.error();
      memory.queued_.emplace(std::move(*queued));
    }
    return memory;
  }

  std::optional<Time> serve(std::uint64_t /*id*/, Time at, std::uint64_t line, bool write) {
    return banks_ ? banks_->serve(at, line, write) : queued_->serve(at, line, write);
  }
  std::optional<Time> post(Time at, std::uint64_t line) {
    return banks_ ? banks_->post(at, line) : queued_->accept(at, line);
  }
  void read_for_migration(Time at, std::uint64_t line) { serve(no_access, at, line, false); }

  Time next() const { return never; }
  std::optional<Completion> step() { return std::nullopt; }

  Work finish(Time end) {
    if (!banks_) return queued_->work();
    banks_->drain(end);
    banks_->finish(end);
    return banks_->work();
  }
  std::vector<BankWork> banks() const { return {}; }

private:
  std::optional<FastBanks> banks_;
  std::optional<QueuedMemory> queued_;
};

} // namespace

Result<Outcome> run_fast(RequestSource& source, const Setup& setup) {
  return run_with<FastMemory>(source, setup);
}

} // namespace nearfar::sim
