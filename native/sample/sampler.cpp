#include "sample/sampler.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>
#include <unistd.h>

#include "os/clock.hpp"
#include "os/event_ring.hpp"
#include "os/processes.hpp"
#include "perf/record.hpp"
#include "sample/bursts.hpp"
#include "sample/collector.hpp"
#include "sample/perf_data.hpp"
#include "sample/sample_cost.hpp"
#include "sample/signal_clock.hpp"

namespace nearfar::sample {

namespace {

perf_event_attr common_attributes(bool from_exec) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  // Not PERF_SAMPLE_PERIOD: with it, the kernel samples each event of software, whatever the period
  // (perf_swevent_event() in kernel/events/core.c).
  attributes.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                           PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER;
  attributes.sample_regs_user = register_mask();
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.inherit = 1;
  attributes.disabled = from_exec ? 1 : 0;
  attributes.enable_on_exec = from_exec ? 1 : 0;
  attributes.sample_id_all = 1;
  return attributes;
}

perf_event_attr clock_event(std::uint64_t period_ns, bool from_exec) {
  perf_event_attr clock = common_attributes(from_exec);
  clock.config = PERF_COUNT_SW_CPU_CLOCK;
  clock.sample_period = period_ns;
  return clock;
}

void record_changes(perf_event_attr& event) {
  event.mmap = event.mmap2 = event.mmap_data = 1;
  event.comm = event.comm_exec = 1;
  event.task = 1;
}

/// Changes of processes are recorded by an event that is never disabled. A running service has none:
/// between bursts it pays for no event, and its mappings are read at each burst.
std::vector<perf_event_attr> events(const SamplerOptions& options, bool from_exec) {
  std::vector<perf_event_attr> found = {clock_event(options.period_ns, from_exec)};
  if (options.fault_period != 0) {
    found.push_back(common_attributes(from_exec));
    found.back().config = PERF_COUNT_SW_PAGE_FAULTS;
    found.back().sample_period = options.fault_period;
  }
  if (from_exec) {
    found.push_back(common_attributes(from_exec));
    found.back().config = PERF_COUNT_SW_DUMMY;
  }
  record_changes(from_exec ? found.back() : found.front());
  return found;
}

/// The share of the time in which the clock may run, by what its samples cost.
double affordable_share(const SamplerOptions& options) {
  if (options.max_cost <= 0) return 1.0;
  const std::uint64_t each_ns = sample_cost_ns(clock_event(options.period_ns, false));
  if (each_ns == 0) return 1.0;
  const double share =
      options.max_cost * static_cast<double>(options.period_ns) / static_cast<double>(each_ns);
  return std::clamp(share, least_share, 1.0);
}

/// The clock of a running service is enabled at one reading in so many.
constexpr unsigned bursts_of_services = 6;

/// A period for as many samples in bursts as otherwise, but not below 1 ms.
SamplerOptions in_bursts(SamplerOptions options) {
  constexpr std::uint64_t shortest_ns = 1'000'000;
  if (options.period_ns > shortest_ns)
    options.period_ns = std::max(options.period_ns / bursts_of_services, shortest_ns);
  return options;
}

Error no_process(pid_t process) {
  if (kill(process, 0) == 0 || errno == EPERM)
    return Error::make(Errc::no_permission,
                       "process %d cannot be sampled: it is another user's, or protected", process)
        .try_next("run it as that user, or as root: sudo");
  return Error::make(Errc::not_found, "no process %d", process)
      .try_next("list processes with `ps -e`");
}

/// A record of the kernel, to be sorted by time. It points into its copy of the bytes.
struct Pending {
  std::uint64_t time_ns;
  std::vector<std::uint8_t> bytes;
  perf::Record record;
};

} // namespace

struct Sampler::Core {
  explicit Core(CodeSource source) : seen(source) {}

  std::vector<os::EventRing> rings;
  perf_event_attr attributes{};
  std::uint64_t fault_period = 0;
  std::vector<std::uint64_t> fault_events; ///< the kernel's numbers of the events of page faults
  std::vector<Pending> pending;
  Collector seen;
  std::optional<SignalClock> signals;
  std::uint64_t last_ns = 0;
  std::uint64_t period_ns = 0;
  std::optional<Bursts> bursts; ///< of the clock
  std::vector<std::uint64_t> burst_begins;
  bool begins_burst = true;       ///< the next sample is the first of a burst
  bool is_paused = false;         ///< records that are taken are of a pause
  bool slipped = false;           ///< the clock of a program ran in a pause
  pid_t starter = 0;              ///< process that starts the programs, if so
  pid_t root = 0;                 ///< of the process tree, if so
  bool sees_all = false;          ///< the rings have records of all processes
  std::set<pid_t> followed;       ///< if so: those that are taken
  std::uint64_t completed_ns = 0; ///< when mappings were last read again

  Status open(const SamplerOptions& options, std::span<const pid_t> threads, bool from_exec);
  Status follow_from_cpus(pid_t process, const SamplerOptions& options);
  Status follow_by_threads(pid_t process, const SamplerOptions& options);
  std::vector<pid_t> read_tree(pid_t process);
  void advance_bursts();
  void complete_mappings();
  void note_fork(const perf::Record& record);
  void take_clock(const perf::Sample& record);
  bool is_followed(const perf::Record& record) const;
  void poll();
  void take(const perf::Sample& record);
  template <class Other>
  void take(const Other& record) {
    seen.take(record);
  }
};

Status Sampler::Core::open(const SamplerOptions& options, std::span<const pid_t> threads,
                           bool from_exec) {
  const std::vector<perf_event_attr> wanted = events(options, from_exec);
  attributes = wanted.front();
  period_ns = options.period_ns;
  fault_period = options.fault_period;
  for (int cpu = 0; cpu < os::cpu_count(); ++cpu) {
    Result<os::EventRing> ring = os::EventRing::open(wanted, threads.front(), cpu);
    if (!ring) return ring.error();
    for (const pid_t thread : threads.subspan(1)) {
      Status added = ring->add(wanted, thread, cpu);
      if (!added && added.error().os_errno != ESRCH) return added.error(); // it has ended
    }
    for (std::size_t i = 0; i < ring->ids().size(); ++i)
      if (wanted[i % wanted.size()].config == PERF_COUNT_SW_PAGE_FAULTS)
        fault_events.push_back(ring->ids()[i]);
    rings.push_back(std::move(*ring));
  }
  return Done{};
}

/// Reads mappings and names of a process and of its descendants. Returns the existing ones.
std::vector<pid_t> Sampler::Core::read_tree(pid_t process) {
  std::vector<pid_t> found;
  for (const pid_t each : os::process_tree(process)) {
    if (!seen.processes.read(each)) continue;
    seen.programs[each].name = os::name_of(each);
    found.push_back(each);
  }
  return found;
}

Status Sampler::Core::follow_from_cpus(pid_t process, const SamplerOptions& options) {
  const pid_t all = -1;
  Status opened = open(options, {&all, 1}, false);
  if (!opened) {
    rings.clear();
    fault_events.clear();
    return opened;
  }
  sees_all = true;
  const std::vector<pid_t> tree = read_tree(process);
  followed.insert(tree.begin(), tree.end());
  return Done{};
}

Status Sampler::Core::follow_by_threads(pid_t process, const SamplerOptions& options) {
  std::vector<pid_t> threads;
  for (const pid_t each : read_tree(process))
    std::ranges::copy(os::threads_of(each), std::back_inserter(threads));
  if (threads.empty()) return no_process(process);
  root = process;
  bursts.emplace(1.0 / bursts_of_services, os::now_ns());
  return open(in_bursts(options), threads, false);
}

/// Enables or disables the clock for the time to the next reading. Records that are read next are of
/// the time before. Between bursts of a running service, no records of mappings, names and forks are
/// written. The kernel enables the clock of a program that another one executes in a pause.
void Sampler::Core::advance_bursts() {
  if (!bursts) return;
  is_paused = !bursts->enabled();
  const bool changes = bursts->advance(os::now_ns());
  const bool begins = changes && bursts->enabled();
  if (begins && root != 0) read_tree(root);
  begins_burst = begins_burst || begins;
  if (changes || (slipped && !bursts->enabled()))
    for (os::EventRing& ring : rings)
      ring.enable(PERF_COUNT_SW_CPU_CLOCK, bursts->enabled());
  slipped = false;
}

/// Reads the mappings of processes with accesses to unknown memory, at most once a second: the
/// kernel does not report memory that mremap() moves.
void Sampler::Core::complete_mappings() {
  constexpr std::uint64_t interval_ns = 1'000'000'000;
  if (seen.incomplete.empty() || os::now_ns() - completed_ns < interval_ns) return;
  for (const pid_t process : seen.incomplete)
    seen.processes.read(process);
  seen.incomplete.clear();
  completed_ns = os::now_ns();
}

/// Follows a child of a process that is followed.
void Sampler::Core::note_fork(const perf::Record& record) {
  const auto* fork = std::get_if<perf::Fork>(&record);
  if (sees_all && fork != nullptr && followed.contains(static_cast<pid_t>(fork->parent_pid)))
    followed.insert(static_cast<pid_t>(fork->pid));
}

/// Whether a record is of the processes that are sampled.
bool Sampler::Core::is_followed(const perf::Record& record) const {
  if (!sees_all) return true;
  return std::visit(
      [&](const auto& one) {
        if constexpr (requires { one.pid; })
          return followed.contains(static_cast<pid_t>(one.pid));
        else
          return true;
      },
      record);
}

void Sampler::Core::poll() {
  advance_bursts();
  for (os::EventRing& ring : rings)
    ring.drain([&](perf::ByteSpan bytes) {
      std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
      Result<perf::Record> record = perf::decode(attributes, copy);
      if (record) pending.push_back({time_of(*record), std::move(copy), *record});
    });
  if (seen.log) seen.log->poll(); // after the samples, so that it has the memory that they are of
  std::ranges::stable_sort(pending, {}, &Pending::time_ns);
  for (const Pending& one : pending) {
    note_fork(one.record);
    if (is_followed(one.record)) std::visit([&](const auto& value) { take(value); }, one.record);
    last_ns = std::max(last_ns, one.time_ns);
  }
  pending.clear();
  complete_mappings();
  if (signals) last_ns = signals->take(seen);
  seen.data.note_sizes(last_ns);
}

void Sampler::Core::take(const perf::Sample& record) {
  if (record.user_registers.abi != PERF_SAMPLE_REGS_ABI_64) return; // 32-bit code
  if (std::ranges::find(fault_events, record.id) == fault_events.end()) return take_clock(record);
  perf::Sample fault = record;
  fault.period = fault_period;
  seen.take_fault(fault);
}

/// A sample of a pause stands for nothing. The starter's own clock runs with the others.
void Sampler::Core::take_clock(const perf::Sample& record) {
  slipped = slipped || is_paused;
  if (is_paused || static_cast<pid_t>(record.pid) == starter) return;
  if (bursts && begins_burst) burst_begins.push_back(record.time);
  begins_burst = false;
  seen.take_clock(record);
}

Sampler::Sampler(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Sampler::Sampler(Sampler&& other) noexcept = default;
Sampler::~Sampler() = default;

Result<Sampler> Sampler::open(const SamplerOptions& options) {
  auto core = std::make_unique<Core>(CodeSource::running_process);
  const bool by_signals = options.clock == ClockSource::signals;
  if (by_signals) {
    core->signals.emplace();
    core->period_ns = options.period_ns;
  } else {
    const pid_t self = 0;
    const double share = affordable_share(options);
    Status opened = core->open(options, {&self, 1}, true);
    if (!opened) return opened.error();
    core->starter = getpid();
    if (share < 1) core->bursts.emplace(share, os::now_ns());
  }
  const auto period_ns = static_cast<std::uint32_t>(by_signals ? options.period_ns : 0);
  Result<alloclog::AllocationLog> log =
      alloclog::AllocationLog::create(alloclog::default_ready_slots, period_ns);
  if (!log) return log.error();
  core->seen.log = std::move(*log);
  return Sampler(std::move(core));
}

Result<Sampler> Sampler::attach(pid_t process, const SamplerOptions& options) {
  auto core = std::make_unique<Core>(CodeSource::running_process);
  const bool from_cpus =
      options.per_cpu_clock && static_cast<bool>(core->follow_from_cpus(process, options));
  if (from_cpus && core->followed.empty()) return no_process(process);
  if (!from_cpus) {
    Status opened = core->follow_by_threads(process, options);
    if (!opened) return opened.error();
  }
  return Sampler(std::move(core));
}

Result<Sampler> Sampler::read(const char* path) {
  auto core = std::make_unique<Core>(CodeSource::recorded_process);
  Status done = collect_perf_data(path, core->seen);
  if (!done) return done.error();
  return Sampler(std::move(core));
}

std::string Sampler::log_value() const {
  return core_->seen.log ? core_->seen.log->variable_value() : "";
}
void Sampler::poll() { core_->poll(); }
void Sampler::stop() { core_->rings.clear(); }
std::span<const Sample> Sampler::samples() const { return core_->seen.store.all(); }
unsigned Sampler::keeps_one_in() const { return core_->seen.store.keeps_one_in(); }
std::span<const CodeLocation> Sampler::code() const { return core_->seen.code.all(); }
std::span<const DataRegion> Sampler::data() const { return core_->seen.data.all(); }
std::span<const MappedFile> Sampler::files() const { return core_->seen.processes.files(); }

std::span<const std::string> Sampler::names() const { return core_->seen.processes.names(); }
std::vector<ProcessRegion> Sampler::regions() const { return core_->seen.processes.regions(); }

std::vector<SampledProgram> Sampler::programs() const {
  std::vector<SampledProgram> found;
  for (const auto& [process, program] : core_->seen.programs)
    found.push_back({process, program.name, program.samples});
  return found;
}

std::uint64_t Sampler::period_ns() const { return core_->period_ns; }
double Sampler::enabled_share() const {
  return core_->bursts ? core_->bursts->enabled_share() : 1.0;
}
std::span<const std::uint64_t> Sampler::bursts() const { return core_->burst_begins; }
std::uint64_t Sampler::lost() const { return core_->seen.lost; }
std::uint64_t Sampler::unlogged() const {
  return core_->seen.log ? core_->seen.log->lost().processes : 0;
}
std::vector<pid_t> Sampler::logged() const {
  std::vector<pid_t> found;
  if (core_->seen.log)
    for (const alloclog::ProcessImage& image : core_->seen.log->images())
      found.push_back(image.pid);
  return found;
}

} // namespace nearfar::sample
