#include "sample/signal_clock.hpp"

#include <algorithm>

#include "os/process_pages.hpp"
#include "os/processes.hpp"

namespace nearfar::sample {

namespace {

constexpr std::uint64_t mappings_age_ns = 100'000'000;
constexpr std::uint64_t first_look_ns = 100'000'000;
constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t chunk_bytes = 16 * page_bytes;
constexpr std::uint64_t max_pages = 1 << 22; ///< of a region, that are looked up: 16 GiB

perf::Sample as_record(pid_t process, const alloclog::ClockSample& sample) {
  perf::Sample record;
  record.user_mode = true;
  record.pid = static_cast<std::uint32_t>(process);
  record.tid = sample.thread;
  record.ip = sample.instruction;
  record.time = sample.time_ns;
  record.period = sample.period_ns;
  record.user_registers = kernel_registers(sample.registers);
  return record;
}

/// Whether a region may have data that can be placed: neither a file nor a stack.
bool is_placed(const ProcessRegion& region) {
  return region.name.empty() || region.name == "[heap]" || region.is_statics;
}

/// Takes the chunks of a run of pages that were not there before, each with its pages.
void take_run(Collector& seen, std::unordered_set<std::uint64_t>& chunks, perf::Sample& record,
              const os::PageRun& run) {
  const std::uint64_t end = run.address + run.pages * page_bytes;
  std::uint64_t next = 0;
  for (std::uint64_t at = run.address; at < end; at = next) {
    next = std::min(end, (at / chunk_bytes + 1) * chunk_bytes);
    record.addr = at;
    record.period = (next - at) / page_bytes;
    if (chunks.insert(at / chunk_bytes).second) seen.take_fault(record);
  }
}

} // namespace

void SignalClock::read_mappings(Collector& seen, Image& image, pid_t process,
                                std::uint64_t now_ns) {
  if (now_ns < image.read_ns + mappings_age_ns) return;
  image.read_ns = now_ns;
  seen.processes.read(process);
}

void SignalClock::take_touched(Collector& seen, Image& image, pid_t process, std::uint64_t now_ns) {
  const std::uint64_t run_ns = now_ns - image.first_ns;
  if (run_ns < first_look_ns || run_ns < 2 * (image.touched_ns - image.first_ns)) return;
  image.touched_ns = now_ns;
  auto pages = os::ProcessPages::open(process);
  if (!pages) return; // it has ended
  perf::Sample record;
  record.pid = record.tid = static_cast<std::uint32_t>(process);
  record.time = now_ns;
  for (const ProcessRegion& region : seen.processes.regions()) {
    if (region.process != process || !is_placed(region)) continue;
    auto found = pages->locate(region.begin, region.end, max_pages);
    if (!found) return;
    for (const os::PageRun& run : found->runs)
      take_run(seen, image.chunks, record, run);
  }
}

/// The call chains of an image's sites are placed in files once, before its first sample.
void SignalClock::add_images(Collector& seen) {
  for (const alloclog::ProcessImage& image : seen.log->images()) {
    if (!images_.try_emplace(image.number).second) continue;
    seen.processes.start_program(image.pid);
    seen.programs[image.pid].name = os::name_of(image.pid);
    seen.processes.read(image.pid);
  }
}

std::uint64_t SignalClock::take(Collector& seen) {
  add_images(seen);
  seen.log->take_clock_samples(
      [&](const alloclog::ProcessImage& image, const alloclog::ClockSample& sample) {
        const std::uint64_t now_ns = sample.time_ns;
        Image& its = images_[image.number];
        if (its.first_ns == 0) its.first_ns = its.touched_ns = now_ns;
        read_mappings(seen, its, image.pid, now_ns);
        seen.take_clock(as_record(image.pid, sample));
        last_ns_ = std::max(last_ns_, now_ns);
        take_touched(seen, its, image.pid, last_ns_);
      });
  seen.lost = seen.log->lost().clock_samples;
  return last_ns_;
}

} // namespace nearfar::sample
