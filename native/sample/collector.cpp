#include "sample/collector.hpp"

#include <algorithm>
#include <limits>

namespace nearfar::sample {

namespace {

/// Numbers of the kernel (asm/perf_regs.h) for the processor's registers, by their own numbers.
constexpr unsigned kernel_numbers[registers] = {0,  2,  3,  1,  7,  6,  4,  5,
                                                16, 17, 18, 19, 20, 21, 22, 23};
constexpr unsigned kernel_stack_pointer = 7;

template <class T>
T at_most(std::uint64_t value) {
  return static_cast<T>(std::min<std::uint64_t>(value, std::numeric_limits<T>::max()));
}

Sample started(const perf::Sample& record, SampleKind kind) {
  Sample sample;
  sample.kind = kind;
  sample.time_ns = record.time;
  sample.process = static_cast<pid_t>(record.pid);
  sample.thread = static_cast<pid_t>(record.tid);
  sample.period = at_most<std::uint32_t>(record.period);
  return sample;
}

bool has_all_registers(const perf::Registers& found) {
  return found.abi == PERF_SAMPLE_REGS_ABI_64 &&
         (found.present & register_mask()) == register_mask();
}

} // namespace

std::uint64_t register_mask() {
  std::uint64_t mask = 0;
  for (const unsigned number : kernel_numbers)
    mask |= std::uint64_t{1} << number;
  return mask;
}

perf::Registers kernel_registers(const std::uint64_t (&values)[registers]) {
  perf::Registers made;
  made.abi = PERF_SAMPLE_REGS_ABI_64;
  made.present = static_cast<std::uint32_t>(register_mask());
  for (unsigned i = 0; i < registers; ++i)
    made.values[kernel_numbers[i]] = values[i];
  return made;
}

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

/// The address that a sample waited for. If a load overwrote its index, the register contains the
/// loaded index or pointer; the data belongs to the array in both cases.
Addresses Collector::addresses_of(const StalledAccess& access, const perf::Sample& record) {
  Registers values;
  for (unsigned i = 0; i < registers; ++i)
    values[i] = record.user_registers.values[kernel_numbers[i]];
  const auto process = static_cast<pid_t>(record.pid);
  const auto is_data = [&](std::uint64_t address) {
    return processes.find(process, address) != nullptr || data.is_logged(process, address);
  };
  const std::uint64_t accessed = access.address(record.ip, values).value_or(0);
  const std::uint64_t owner =
      access.lost_index ? access.array(record.ip, values).value_or(0) : accessed;
  if (!processes.may_be_data(process, owner) && !is_data(owner)) {
    incomplete.insert(process);
    return {0, 0};
  }
  if (!access.lost_index) return {accessed, owner};
  const std::uint64_t loaded = values[static_cast<unsigned>(access.index)];
  for (const std::uint64_t candidate : {accessed, loaded})
    if (is_data(candidate)) return {candidate, owner};
  return {owner, owner};
}

void Collector::take_clock(const perf::Sample& record) {
  Sample sample = started(record, SampleKind::clock);
  ++programs[sample.process].samples;
  (void)stack_pointer(record); // for samples of the thread that have no registers
  sample.code = code.number_of(sample.process, record.ip);
  const auto& access = code.access(sample.code);
  if (!access || !has_all_registers(record.user_registers)) return store.add(sample);
  const Addresses found = addresses_of(*access, record);
  sample.address = found.accessed;
  add(sample, record, found.owner);
}

void Collector::take_fault(const perf::Sample& record) {
  Sample sample = started(record, SampleKind::fault);
  sample.address = record.addr;
  add(sample, record, record.addr);
}

void Collector::take_memory(const perf::Sample& record, const perf::MemoryAccess& access) {
  Sample sample = started(record, SampleKind::memory);
  sample.code = code.number_of(sample.process, record.ip);
  sample.address = access.address.value_or(0);
  sample.level = static_cast<std::uint8_t>(access.source.level);
  sample.latency_cycles = at_most<std::uint16_t>(access.latency_cycles);
  add(sample, record, sample.address);
}

std::uint64_t Collector::stack_pointer(const perf::Sample& record) {
  std::uint64_t& last = stack_pointers_[record.tid];
  if (record.user_registers.has(kernel_stack_pointer))
    last = record.user_registers.values[kernel_stack_pointer];
  return last;
}

void Collector::add(Sample& sample, const perf::Sample& record, std::uint64_t owner) {
  const std::uint64_t stack = stack_pointer(record);
  if (owner != 0) sample.data = data.number_of(sample.process, owner, stack);
  store.add(sample);
}

void Collector::take(const perf::Mapping& record) {
  MappedRange range;
  range.begin = record.address;
  range.end = record.address + record.length;
  range.offset = record.file_offset;
  range.is_code = record.executable;
  processes.name_range(range, std::string(record.file));
  processes.add(static_cast<pid_t>(record.pid), range);
}

void Collector::take(const perf::Comm& record) {
  const auto process = static_cast<pid_t>(record.pid);
  if (record.exec) processes.start_program(process);
  if (record.pid == record.tid) programs[process].name = record.name;
}

void Collector::take(const perf::Fork& record) {
  const auto parent = static_cast<pid_t>(record.parent_pid);
  const auto child = static_cast<pid_t>(record.pid);
  processes.fork(parent, child);
  if (parent != child && programs.contains(parent)) programs[child].name = programs[parent].name;
}

} // namespace nearfar::sample
