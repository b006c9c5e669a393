#include "trace/stalls.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace nearfar::trace {

namespace {

constexpr unsigned line_shift = 6;

bool sensible(const MemoryCost& m) {
  for (const double value : {m.latency_ns, m.line_ns, m.write_line_ns, m.walk_ns})
    if (!std::isfinite(value) || value < 0) return false;
  return m.page_shift >= 12 && m.page_shift <= 30;
}

} // namespace

Result<Costs> Costs::create(const Placing& placing) {
  const CoreCost& core = placing.core;
  const bool good = sensible(placing.memories[0]) && sensible(placing.memories[1]) &&
                    core.instruction_ns >= 0 && std::isfinite(core.instruction_ns) &&
                    core.held_ns >= 0 && std::isfinite(core.held_ns) && core.window > 0 &&
                    core.parallelism > 0 && core.parallelism <= max_parallel && core.tlb_ways > 0 &&
                    core.tlb_entries >= core.tlb_ways && core.chained >= 0 && core.chained <= 1;
  if (!good)
    return Error::make(Errc::bad_input, "these figures of core and memories make no sense")
        .try_next("latencies are finite, a core has 1 to %u lines in flight", max_parallel);
  return Costs(placing);
}

Costs::Costs(const Placing& placing) : placing_(placing) {
  const CoreCost& core = placing.core;
  pages_.ways = core.tlb_ways;
  pages_.sets = std::bit_floor(std::uint64_t{core.tlb_entries / core.tlb_ways});
  pages_.tags.assign(pages_.sets * pages_.ways, ~std::uint64_t{0});
}

/// `tag`: the number of a page, and below it one bit for its size.
bool Costs::Pages::knows(std::uint64_t tag) {
  std::uint64_t* set = tags.data() + (tag >> 1 & (sets - 1)) * ways;
  std::uint64_t carried = tag;
  for (unsigned way = 0; way < ways; ++way) { // each moves one place down as it is passed
    std::swap(set[way], carried);
    if (carried == tag) return true;
  }
  return false;
}

void Costs::take(std::span<const Record> records, std::span<const std::uint32_t> sites) {
  for (const Record& one : records) {
    const std::uint32_t site = one.object < sites.size() ? sites[one.object] : 0;
    take(one, site, site < placing_.far_sites.size() && placing_.far_sites[site] != 0);
  }
}

SiteCost& Costs::cost_of(std::uint32_t site) {
  if (site >= sites_.size()) {
    sites_.resize(site + std::size_t{1});
    max_ns_.resize(sites_.size());
  }
  return sites_[site];
}

Costs::Thread& Costs::thread_of(const Record& record) {
  if (record.thread >= threads_.size()) threads_.resize(record.thread + std::size_t{1});
  return threads_[record.thread];
}

void Costs::take(const Record& record, std::uint32_t site, unsigned memory) {
  Thread& thread = thread_of(record);
  SiteCost& cost = cost_of(site);
  max_ns_[site] += placing_.memories[memory].latency_ns;
  if (thread.passed_by) {
    drain(thread);
    thread.instruction = record.instructions;
    thread.passed_by = false;
  }
  if (record.instructions > thread.instruction) {
    const std::uint64_t window = placing_.core.window;
    if (record.instructions > window) retire(thread, record.instructions - window);
    execute(thread, record.instructions);
  }
  thread.returns[thread.records++ % kept] = {thread.now - thread.held, 0, max_parallel};
  switch (record.kind) {
  case RecordKind::load:
    ++cost.reads;
    thread.loads.push_back({record.instructions, send(thread, record, site, memory), site});
    thread.last_load = thread.records;
    break;
  case RecordKind::store:
    ++cost.reads;
    wait(thread,
         send(thread, record, site, memory) + thread.held - placing_.memories[memory].latency_ns -
             ahead_ns(),
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

void Costs::move(const Record& record, std::uint32_t site, const Traffic& traffic, double held_ns) {
  Thread& thread = thread_of(record);
  cost_of(site);
  max_ns_[site] += held_ns;
  wait(thread, thread.now + held_ns, site);
  for (unsigned memory = 0; memory < 2; ++memory) {
    const double busy =
        static_cast<double>(traffic.read[memory]) * placing_.memories[memory].line_ns +
        static_cast<double>(traffic.written[memory]) * placing_.memories[memory].write_line_ns;
    if (busy > 0) occupy(thread, memory, busy);
  }
}

/// Completes the loads up to this instruction. Each is waited for once the window behind it is
/// full, which is when the instructions up to there are executed.
void Costs::retire(Thread& thread, std::uint64_t up_to) {
  while (thread.first < thread.loads.size() && thread.loads[thread.first].instruction <= up_to) {
    const Flight& flight = thread.loads[thread.first++];
    const std::uint64_t ahead = flight.instruction + placing_.core.window - thread.instruction;
    const double full =
        thread.now - thread.held + static_cast<double>(ahead) * placing_.core.instruction_ns;
    if (flight.back > full) wait(thread, thread.now + (flight.back - full), flight.site);
  }
  if (thread.first == thread.loads.size()) {
    thread.loads.clear();
    thread.first = 0;
  }
}

void Costs::execute(Thread& thread, std::uint64_t up_to) {
  const std::uint64_t instructions = up_to - thread.instruction;
  const double held = static_cast<double>(instructions) * placing_.core.held_ns;
  thread.now += static_cast<double>(instructions) * placing_.core.instruction_ns + held;
  thread.held += held;
  instructions_ += instructions;
  thread.instruction = up_to;
}

/// Waits for all loads in flight.
void Costs::drain(Thread& thread) {
  for (; thread.first < thread.loads.size(); ++thread.first)
    wait(thread, thread.loads[thread.first].back + thread.held, thread.loads[thread.first].site);
  thread.loads.clear();
  thread.first = 0;
}

void Costs::pass_by() {
  for (Thread& thread : threads_)
    thread.passed_by = true;
}

void Costs::wait(Thread& thread, double until, std::uint32_t site) {
  if (until <= thread.now) return;
  sites_[site].stall_ns += until - thread.now;
  stall_ns_ += until - thread.now;
  thread.now = until;
}

/// How many records of the thread back the address was loaded; 0: not, or too long ago.
std::uint64_t Costs::parent_of(Thread& thread, const Record& record) const {
  if (record.depends > 0) return record.depends;
  if (record.kind != RecordKind::load || thread.last_load == 0) return 0;
  thread.chained += placing_.core.chained;
  if (thread.chained < 1) return 0;
  thread.chained -= 1;
  return thread.records - thread.last_load;
}

/// A line's way to memory and back, in one of the places for lines in flight. Returns when it is
/// there, without held time. What waits for a load takes over its place: a chain of loads holds one.
double Costs::send(Thread& thread, const Record& record, std::uint32_t site, unsigned memory) {
  const MemoryCost& costs = placing_.memories[memory];
  SiteCost& cost = sites_[site];
  double start = thread.now;
  unsigned place = max_parallel;
  const std::uint64_t back_to = parent_of(thread, record);
  if (back_to > 0 && back_to < kept && back_to < thread.records) {
    ++cost.dependent;
    const Return& parent = thread.returns[(thread.records - 1 - back_to) % kept];
    start = std::max(start, parent.back + thread.held);
    if (parent.place < max_parallel && thread.lines[parent.place] == parent.line)
      place = parent.place;
  }
  if (place == max_parallel) {
    place = first_free(thread);
    start = std::max(start, thread.lines[place]);
  }
  const std::uint64_t page = record.line << line_shift >> costs.page_shift;
  const bool other_size = costs.page_shift != placing_.memories[0].page_shift;
  if (!pages_.knows(page << 1 | other_size)) {
    ++cost.walks;
    max_ns_[site] += costs.walk_ns;
    start += costs.walk_ns;
  }
  start = std::max(start, free_at(thread, memory));
  // What sets out later, at the end of a chain, leaves the bus to others until then.
  occupy_line(thread, memory, false);
  const double line = start + costs.latency_ns;
  const double back = line - thread.held;
  thread.lines[place] = line;
  thread.returns[(thread.records - 1) % kept] = {back, line, place};
  return back;
}

unsigned Costs::first_free(const Thread& thread) const {
  unsigned found = 0;
  double least = thread.lines[0];
  for (unsigned i = 1; i < placing_.core.parallelism; ++i) {
    found = thread.lines[i] < least ? i : found;
    least = std::min(least, thread.lines[i]);
  }
  return found;
}

/// A line that a prefetcher asks for. It has places of its own; what bounds it is the bandwidth.
void Costs::stream(Thread& thread, unsigned memory, std::uint32_t site) {
  const double start = std::max(thread.now, free_at(thread, memory));
  occupy_line(thread, memory, false);
  wait(thread, start - ahead_ns(), site);
}

void Costs::occupy(Thread& thread, unsigned memory, double ns) {
  thread.free_at[memory] = std::max(thread.free_at[memory], thread.now) + ns;
  occupied_ns_[memory] += ns;
}

/// A line occupies its memory and the core's buffers: those for as much longer as the memory's
/// latency is than near memory's, but no longer than a thread takes for a line of that memory alone.
void Costs::occupy_line(Thread& thread, unsigned memory, bool written) {
  const MemoryCost& near = placing_.memories[0];
  const MemoryCost& costs = placing_.memories[memory];
  const double ns = written ? costs.write_line_ns : costs.line_ns;
  const double near_ns = written ? near.write_line_ns : near.line_ns;
  const double longer = near.latency_ns > 0 ? costs.latency_ns / near.latency_ns : 1;
  occupy(thread, memory, ns);
  thread.core_free_at = std::max(thread.core_free_at, thread.now) + std::min(ns, near_ns * longer);
}

double Costs::free_at(const Thread& thread, unsigned memory) const {
  return std::max(thread.free_at[memory], thread.core_free_at);
}

/// Threads that run at once share the memories: they take as long as their lines do, at least.
void Costs::share_memories(Cost& cost) {
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

/// Takes from sites what is charged beyond what their accesses can wait, and charges it to the
/// others by what theirs can wait yet.
void Costs::bound_charges(Cost& cost) {
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

Cost Costs::finish(std::uint64_t instructions, std::size_t sites) {
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
