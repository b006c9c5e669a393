#include "trace/stalls.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace nearfar::trace {

namespace {

constexpr unsigned line_shift = 6;

bool sensible(const MemoryCost& m) {
  for (const double value :
       {m.latency_ns, m.read_ns_per_line, m.write_ns_per_line, m.walk_ns, m.overlapped_walk_ns})
    if (!std::isfinite(value) || value < 0) return false;
  return m.page_shift >= 12 && m.page_shift <= 30;
}

} // namespace

Result<StallModel> StallModel::create(const SitePlacement& placing) {
  const CoreCost& core = placing.core;
  const bool good =
      sensible(placing.memories[0]) && sensible(placing.memories[1]) && core.instruction_ns >= 0 &&
      std::isfinite(core.instruction_ns) && core.serial_ns_per_instruction >= 0 &&
      std::isfinite(core.serial_ns_per_instruction) && core.rob_entries > 0 &&
      core.fill_buffers > 0 && core.fill_buffers <= max_fill_buffers && core.tlb_ways > 0 &&
      core.tlb_entries >= core.tlb_ways && core.chained_fraction >= 0 && core.chained_fraction <= 1;
  if (!good)
    return Error::make(Errc::bad_input, "these figures of core and memories make no sense")
        .try_next("latencies are finite, a core has 1 to %u lines in flight", max_fill_buffers);
  return StallModel(placing);
}

StallModel::StallModel(const SitePlacement& placing) : placing_(placing) {
  const CoreCost& core = placing.core;
  tlb_.ways = core.tlb_ways;
  tlb_.sets = std::bit_floor(std::uint64_t{core.tlb_entries / core.tlb_ways});
  tlb_.tags.assign(tlb_.sets * tlb_.ways, ~std::uint64_t{0});
}

/// `tag`: the number of a page, and below it one bit for its size.
bool StallModel::Tlb::lookup(std::uint64_t tag) {
  std::uint64_t* set = tags.data() + (tag >> 1 & (sets - 1)) * ways;
  std::uint64_t carried = tag;
  for (unsigned way = 0; way < ways; ++way) { // each moves one place down as it is passed
    std::swap(set[way], carried);
    if (carried == tag) return true;
  }
  return false;
}

void StallModel::take(std::span<const Record> records, std::span<const std::uint32_t> sites) {
  for (const Record& one : records) {
    const std::uint32_t site = one.object < sites.size() ? sites[one.object] : 0;
    take(one, site, site < placing_.far_sites.size() && placing_.far_sites[site] != 0);
  }
}

SiteCost& StallModel::cost_of(std::uint32_t site) {
  if (site >= sites_.size()) {
    sites_.resize(site + std::size_t{1});
    max_ns_.resize(sites_.size());
  }
  return sites_[site];
}

StallModel::Thread& StallModel::thread_of(const Record& record) {
  if (record.thread >= threads_.size()) threads_.resize(record.thread + std::size_t{1});
  return threads_[record.thread];
}

void StallModel::take(const Record& record, std::uint32_t site, unsigned memory) {
  Thread& thread = thread_of(record);
  SiteCost& cost = cost_of(site);
  max_ns_[site] += placing_.memories[memory].latency_ns;
  if (thread.has_skipped) {
    drain(thread);
    thread.instruction = record.instructions;
    thread.has_skipped = false;
  }
  if (record.instructions > thread.instruction) {
    const std::uint64_t window = placing_.core.rob_entries;
    if (record.instructions > window) retire(thread, record.instructions - window);
    execute(thread, record.instructions);
  }
  thread.returns[thread.records++ % kept] = {thread.now - thread.serial, 0, max_fill_buffers};
  switch (record.kind) {
  case RecordKind::load:
    ++cost.reads;
    thread.loads.push_back({record.instructions, issue(thread, record, site, memory), site});
    thread.last_load = thread.records;
    break;
  case RecordKind::store:
    ++cost.reads;
    wait(thread,
         issue(thread, record, site, memory) + thread.serial -
             placing_.memories[memory].latency_ns - ahead_ns(),
         site);
    break;
  case RecordKind::prefetch:
    ++cost.prefetches;
    stream(thread, memory, site);
    break;
  case RecordKind::write_back:
  case RecordKind::nt_store:
    ++cost.writes;
    occupy_line(thread, memory, true);
    break;
  }
}

void StallModel::move(const Record& record, std::uint32_t site, const Traffic& traffic,
                      double kernel_ns) {
  Thread& thread = thread_of(record);
  cost_of(site);
  max_ns_[site] += kernel_ns;
  wait(thread, thread.now + kernel_ns, site);
  for (unsigned memory = 0; memory < 2; ++memory) {
    const double busy =
        static_cast<double>(traffic.read[memory]) * placing_.memories[memory].read_ns_per_line +
        static_cast<double>(traffic.written[memory]) * placing_.memories[memory].write_ns_per_line;
    if (busy > 0) occupy(thread, memory, busy);
  }
}

/// Completes the loads up to this instruction. Each is waited for once the reorder buffer is
/// full, which is when the instructions up to there are executed.
void StallModel::retire(Thread& thread, std::uint64_t up_to) {
  while (thread.first < thread.loads.size() && thread.loads[thread.first].instruction <= up_to) {
    const PendingLoad& load = thread.loads[thread.first++];
    const std::uint64_t ahead = load.instruction + placing_.core.rob_entries - thread.instruction;
    const double full =
        thread.now - thread.serial + static_cast<double>(ahead) * placing_.core.instruction_ns;
    if (load.back > full) wait(thread, thread.now + (load.back - full), load.site);
  }
  if (thread.first == thread.loads.size()) {
    thread.loads.clear();
    thread.first = 0;
  }
}

void StallModel::execute(Thread& thread, std::uint64_t up_to) {
  const std::uint64_t instructions = up_to - thread.instruction;
  const double held = static_cast<double>(instructions) * placing_.core.serial_ns_per_instruction;
  thread.now += static_cast<double>(instructions) * placing_.core.instruction_ns + held;
  thread.serial += held;
  instructions_ += instructions;
  thread.instruction = up_to;
}

/// Waits for all loads in load.
void StallModel::drain(Thread& thread) {
  for (; thread.first < thread.loads.size(); ++thread.first)
    wait(thread, thread.loads[thread.first].back + thread.serial, thread.loads[thread.first].site);
  thread.loads.clear();
  thread.first = 0;
}

void StallModel::skip_records() {
  for (Thread& thread : threads_)
    thread.has_skipped = true;
}

void StallModel::wait(Thread& thread, double until, std::uint32_t site) {
  if (until <= thread.now) return;
  sites_[site].stall_ns += until - thread.now;
  stall_ns_ += until - thread.now;
  thread.now = until;
}

/// Distance, in records of the thread, to the load of the address; 0: none, or too long ago.
std::uint64_t StallModel::parent_of(Thread& thread, const Record& record) const {
  if (record.depends > 0) return record.depends;
  if (record.kind != RecordKind::load || thread.last_load == 0) return 0;
  thread.chained_rest += placing_.core.chained_fraction;
  if (thread.chained_rest < 1) return 0;
  thread.chained_rest -= 1;
  return thread.records - thread.last_load;
}

/// The transfer of a line from memory, in a fill buffer. Returns the time at which it arrives,
/// without serial time. A dependent load reuses the buffer of its producer: a chain of loads has
/// one.
double StallModel::issue(Thread& thread, const Record& record, std::uint32_t site,
                         unsigned memory) {
  const MemoryCost& costs = placing_.memories[memory];
  SiteCost& cost = sites_[site];
  double start = thread.now;
  unsigned buffer = max_fill_buffers;
  const std::uint64_t back_to = parent_of(thread, record);
  if (back_to > 0 && back_to < kept && back_to < thread.records) {
    ++cost.dependent;
    const Return& parent = thread.returns[(thread.records - 1 - back_to) % kept];
    start = std::max(start, parent.back + thread.serial);
    if (parent.buffer < max_fill_buffers && thread.buffer_free_ns[parent.buffer] == parent.line)
      buffer = parent.buffer;
  }
  if (buffer == max_fill_buffers) {
    buffer = first_free_buffer(thread);
    start = std::max(start, thread.buffer_free_ns[buffer]);
  }
  const std::uint64_t page = record.line << line_shift >> costs.page_shift;
  const bool other_size = costs.page_shift != placing_.memories[0].page_shift;
  if (!tlb_.lookup(page << 1 | other_size)) {
    ++cost.walks;
    const double walk_ns = back_to > 0 ? costs.walk_ns : costs.overlapped_walk_ns;
    max_ns_[site] += walk_ns;
    start += walk_ns;
  }
  start = std::max(start, free_at(thread, memory));
  // A load that issues later, at the end of a chain, does not occupy the bus until then.
  occupy_line(thread, memory, false);
  const double line = start + costs.latency_ns;
  const double back = line - thread.serial;
  thread.buffer_free_ns[buffer] = line;
  thread.returns[(thread.records - 1) % kept] = {back, line, buffer};
  return back;
}

unsigned StallModel::first_free_buffer(const Thread& thread) const {
  unsigned found = 0;
  double least = thread.buffer_free_ns[0];
  for (unsigned i = 1; i < placing_.core.fill_buffers; ++i) {
    found = thread.buffer_free_ns[i] < least ? i : found;
    least = std::min(least, thread.buffer_free_ns[i]);
  }
  return found;
}

/// A line that a prefetcher requests. It has buffers of its own; only the bandwidth limits it.
void StallModel::stream(Thread& thread, unsigned memory, std::uint32_t site) {
  const double start = std::max(thread.now, free_at(thread, memory));
  occupy_line(thread, memory, false);
  wait(thread, start - ahead_ns(), site);
}

void StallModel::occupy(Thread& thread, unsigned memory, double ns) {
  thread.free_at[memory] = std::max(thread.free_at[memory], thread.now) + ns;
  occupied_ns_[memory] += ns;
}

/// A line occupies its memory and the core's buffers. It occupies the buffers longer by the ratio
/// of its memory's latency to near memory's, but not longer than a thread takes for a line of only
/// that memory.
void StallModel::occupy_line(Thread& thread, unsigned memory, bool written) {
  const MemoryCost& near = placing_.memories[0];
  const MemoryCost& costs = placing_.memories[memory];
  const double ns = written ? costs.write_ns_per_line : costs.read_ns_per_line;
  const double near_ns = written ? near.write_ns_per_line : near.read_ns_per_line;
  const double longer = near.latency_ns > 0 ? costs.latency_ns / near.latency_ns : 1;
  occupy(thread, memory, ns);
  thread.core_free_at = std::max(thread.core_free_at, thread.now) + std::min(ns, near_ns * longer);
}

double StallModel::free_at(const Thread& thread, unsigned memory) const {
  return std::max(thread.free_at[memory], thread.core_free_at);
}

/// Concurrent threads share the memories: together they take at least the time of their lines.
void StallModel::share_memories(Cost& cost) {
  const double occupied = std::max(occupied_ns_[0], occupied_ns_[1]);
  if (threads_.size() < 2 || cost.time_ns <= 0 || occupied <= cost.time_ns) return;
  const double waited = cost.cpu_ns * (occupied / cost.time_ns - 1);
  cost.time_ns = occupied;
  cost.cpu_ns += waited;
  cost.stall_ns += waited;
  const double charged = std::accumulate(max_ns_.begin(), max_ns_.end(), 0.0);
  for (std::size_t site = 0; site < sites_.size(); ++site)
    cost.sites[site].stall_ns += waited * max_ns_[site] / charged;
}

/// Reduces the stall time of each site to the most that its accesses can wait, and distributes the
/// rest over the other sites in proportion to the time that theirs can still wait.
void StallModel::bound_charges(Cost& cost) {
  double beyond = 0, room = 0;
  for (std::size_t site = 0; site < sites_.size(); ++site) {
    const double left = max_ns_[site] - cost.sites[site].stall_ns;
    (left < 0 ? beyond : room) += std::abs(left);
  }
  const double share = room > 0 ? std::min(beyond / room, 1.0) : 0;
  for (std::size_t site = 0; site < sites_.size(); ++site) {
    double& charged = cost.sites[site].stall_ns;
    const double left = max_ns_[site] - charged;
    charged += left < 0 ? left : left * share;
  }
}

Cost StallModel::finish(std::uint64_t instructions, std::size_t sites) {
  Cost cost;
  for (Thread& thread : threads_) {
    if (threads_.size() == 1 && instructions > thread.instruction) execute(thread, instructions);
    drain(thread);
    cost.time_ns = std::max(cost.time_ns, thread.now);
    cost.cpu_ns += thread.now;
  }
  cost.stall_ns = stall_ns_;
  cost.instructions = instructions_;
  cost.sites = sites_;
  share_memories(cost);
  bound_charges(cost);
  cost.sites.resize(std::max(sites, cost.sites.size()));
  return cost;
}

} // namespace nearfar::trace
