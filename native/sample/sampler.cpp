#include "sample/sampler.hpp"

#include <algorithm>
#include <map>

#include "os/event_ring.hpp"
#include "os/processes.hpp"
#include "perf/record.hpp"
#include "sample/code_places.hpp"
#include "sample/data_places.hpp"

namespace nearfar::sample {

namespace {

/// Numbers of the kernel (asm/perf_regs.h) for the processor's registers, by their own numbers.
constexpr unsigned kernel_numbers[registers] = {0,  2,  3,  1,  7,  6,  4,  5,
                                                16, 17, 18, 19, 20, 21, 22, 23};
constexpr unsigned stack_pointer = 4; ///< number of RSP

constexpr std::uint64_t register_mask() {
  std::uint64_t mask = 0;
  for (const unsigned number : kernel_numbers)
    mask |= std::uint64_t{1} << number;
  return mask;
}

perf_event_attr common_attributes(bool from_exec) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                           PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD |
                           PERF_SAMPLE_REGS_USER;
  attributes.sample_regs_user = register_mask();
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.inherit = 1;
  attributes.disabled = from_exec ? 1 : 0;
  attributes.enable_on_exec = from_exec ? 1 : 0;
  attributes.sample_id_all = 1;
  return attributes;
}

std::vector<perf_event_attr> events(const SamplerOptions& options, bool from_exec) {
  perf_event_attr clock = common_attributes(from_exec);
  clock.config = PERF_COUNT_SW_CPU_CLOCK;
  clock.sample_period = options.period_ns;
  clock.mmap = clock.mmap2 = clock.mmap_data = 1;
  clock.comm = clock.comm_exec = 1;
  clock.task = 1;
  perf_event_attr faults = common_attributes(from_exec);
  faults.config = PERF_COUNT_SW_PAGE_FAULTS;
  faults.sample_period = options.fault_period;
  return options.fault_period != 0 ? std::vector{clock, faults} : std::vector{clock};
}

/// A record of the kernel, copied to be sorted by time.
struct Pending {
  std::uint64_t time_ns;
  std::vector<std::uint8_t> bytes;
};

std::uint64_t time_of(const perf::Record& record) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.sample_id; })
          return one.sample_id.time;
        else
          return one.time;
      },
      record);
}

} // namespace

struct Sampler::Core {
  std::vector<os::EventRing> rings;
  perf_event_attr attributes{};
  std::vector<std::uint64_t> fault_events; ///< the kernel's numbers of the events of page faults
  std::vector<Pending> pending;
  std::optional<alloclog::AllocationLog> log;
  ProcessMap processes;
  SampleStore store;
  CodePlaces code{processes};
  DataPlaces data{processes, log};
  std::map<pid_t, SampledProgram> programs;
  std::uint64_t lost = 0;
  std::uint64_t last_ns = 0;

  Status open(const SamplerOptions& options, std::span<const pid_t> threads, bool from_exec);
  void poll();
  void take(const perf::Sample& record);
  void take(const perf::Mapping& record);
  void take(const perf::Comm& record);
  void take(const perf::Fork& record);
  void take(const perf::Lost& record) { lost += record.count; }
  void take(const perf::LostSamples& record) { lost += record.count; }
  template <class Other>
  void take(const Other&) {}
};

Status Sampler::Core::open(const SamplerOptions& options, std::span<const pid_t> threads,
                           bool from_exec) {
  const std::vector<perf_event_attr> wanted = events(options, from_exec);
  attributes = wanted.front();
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

void Sampler::Core::poll() {
  if (log) log->poll();
  for (os::EventRing& ring : rings)
    ring.drain([&](perf::ByteSpan bytes) {
      Result<perf::Record> record = perf::decode(attributes, bytes);
      if (record) pending.push_back({time_of(*record), {bytes.begin(), bytes.end()}});
    });
  std::ranges::stable_sort(pending, {}, &Pending::time_ns);
  for (const Pending& one : pending) {
    Result<perf::Record> record = perf::decode(attributes, one.bytes);
    std::visit([&](const auto& value) { take(value); }, *record);
    last_ns = std::max(last_ns, one.time_ns);
  }
  pending.clear();
  data.note_sizes(last_ns);
}

void Sampler::Core::take(const perf::Mapping& record) {
  MappedRange range;
  range.begin = record.address;
  range.end = record.address + record.length;
  range.offset = record.file_offset;
  range.is_code = record.executable;
  range.file = processes.file_number(std::string(record.file));
  processes.add(static_cast<pid_t>(record.pid), range);
}

void Sampler::Core::take(const perf::Comm& record) {
  const auto process = static_cast<pid_t>(record.pid);
  if (record.exec) processes.start_program(process);
  if (record.pid == record.tid) programs[process].name = record.name;
}

void Sampler::Core::take(const perf::Fork& record) {
  const auto parent = static_cast<pid_t>(record.parent_pid);
  const auto child = static_cast<pid_t>(record.pid);
  processes.fork(parent, child);
  if (parent != child && programs.contains(parent)) programs[child].name = programs[parent].name;
}

void Sampler::Core::take(const perf::Sample& record) {
  const perf::Registers& found = record.user_registers;
  if (found.abi != PERF_SAMPLE_REGS_ABI_64) return; // 32-bit code
  Registers values;
  for (unsigned i = 0; i < registers; ++i)
    values[i] = found.values[kernel_numbers[i]];
  Sample sample;
  sample.time_ns = record.time;
  sample.process = static_cast<pid_t>(record.pid);
  sample.thread = static_cast<pid_t>(record.tid);
  sample.period = static_cast<std::uint32_t>(record.period);
  if (std::ranges::find(fault_events, record.id) != fault_events.end()) {
    sample.kind = SampleKind::fault;
    sample.address = record.addr;
  } else {
    ++programs[sample.process].samples;
    sample.code = code.number_of(sample.process, record.ip);
    if (const auto& access = code.access(sample.code))
      sample.address = access->address(record.ip, values).value_or(0);
  }
  if (sample.address != 0)
    sample.data = data.number_of(sample.process, sample.address, values[stack_pointer]);
  store.add(sample);
}

Sampler::Sampler(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Sampler::Sampler(Sampler&& other) noexcept = default;
Sampler::~Sampler() = default;

Result<Sampler> Sampler::open(const SamplerOptions& options) {
  auto core = std::make_unique<Core>();
  const pid_t self = 0;
  Status opened = core->open(options, {&self, 1}, true);
  if (!opened) return opened.error();
  Result<alloclog::AllocationLog> log = alloclog::AllocationLog::create();
  if (!log) return log.error();
  core->log = std::move(*log);
  return Sampler(std::move(core));
}

Result<Sampler> Sampler::attach(pid_t process, const SamplerOptions& options) {
  auto core = std::make_unique<Core>();
  std::vector<pid_t> threads;
  for (const pid_t each : os::process_tree(process)) {
    if (!core->processes.read(each)) continue;
    core->programs[each].name = os::name_of(each);
    for (const pid_t thread : os::threads_of(each))
      threads.push_back(thread);
  }
  if (threads.empty())
    return Error::make(Errc::not_found, "no process %d, or it belongs to another user", process)
        .try_next("list processes with `ps -e`");
  Status opened = core->open(options, threads, false);
  if (!opened) return opened.error();
  return Sampler(std::move(core));
}

std::string Sampler::log_value() const { return core_->log ? core_->log->variable_value() : ""; }
void Sampler::poll() { core_->poll(); }
void Sampler::stop() { core_->rings.clear(); }
std::span<const Sample> Sampler::samples() const { return core_->store.all(); }
unsigned Sampler::every() const { return core_->store.every(); }
std::span<const CodePlace> Sampler::code() const { return core_->code.all(); }
std::span<const DataPlace> Sampler::data() const { return core_->data.all(); }
std::span<const MappedFile> Sampler::files() const { return core_->processes.files(); }

std::vector<SampledProgram> Sampler::programs() const {
  std::vector<SampledProgram> found;
  for (const auto& [process, program] : core_->programs)
    found.push_back({process, program.name, program.samples});
  return found;
}

std::uint64_t Sampler::lost() const { return core_->lost; }
std::uint64_t Sampler::unlogged() const { return core_->log ? core_->log->lost().processes : 0; }

} // namespace nearfar::sample
