// Stall time of a trace, by site, for a placement of the sites on near and far memory: an interval
// model of an out-of-order core.
//
// Loads          A load issues when the load that produced its address has returned. It blocks the
//                instructions more than a reorder buffer (rob_entries) after it until it returns.
// Stores         A store does not block, until its line has waited for as long as near memory's
//                latency: store buffers have the same length whatever memory they drain to.
// Fill buffers   At most fill_buffers lines are in flight. A dependent load reuses the buffer of
//                the load that it waited for.
// Bandwidth      The lines of one memory follow each other at its read_ns_per_line. Only this holds
//                back prefetches, which run ahead of the program by near memory's latency. One
//                thread does not stream faster from two memories than from one: lines of both take
//                the same buffers of its core, each for its memory's latency (Little's law).
// TLB            One TLB for both memories; a miss costs the page walk of the line's memory, which
//                is shorter for a load that does not wait for another (walks overlap). It is
//                apart from the TLB of CacheFilter, which counts walks with 4 KiB pages: here the
//                page size depends on the placement.
// Dependences    Recorders compare values, so they miss an address that is computed from a loaded
//                value. chained_fraction is the fraction of the loads without a known producer that
//                are taken to wait for the load before.
// Serial time    While a load is in flight, the instructions after it enter the reorder buffer at
//                instruction_ns each. All other time (branch misses, hits in nearer caches, long
//                operations: serial_ns_per_instruction) hides no latency: a load that is waited for
//                does not come nearer in it.
// Threads        Each has a clock of its own, which runs while the thread is busy. These clocks
//                cannot be compared, so no thread waits for another's lines; but all threads
//                together take at least as long as their lines occupy a memory.
// Sites          A site is charged at most the latency and the page walk of each of its accesses.
//                Further waiting, in queues, is distributed over the sites.
// Source         Interval analysis: Karkhanis and Smith, "A First-Order Superscalar Processor
//                Model", ISCA 2004; Eyerman et al., ACM TOCS 27(2), 2009.
// Limits         threads wait for each other nowhere else.
// Units          nanoseconds, bytes.
// Thread safety  values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "trace/format.hpp"

namespace nearfar::trace {

/// A memory as a core sees it.
struct MemoryCost {
  double latency_ns = 100;     ///< of a load on a page that the TLB knows
  double read_ns_per_line = 3; ///< a line read, at its bandwidth
  double write_ns_per_line = 3;
  double walk_ns = 0;            ///< of a page that the TLB does not know, for a dependent load
  double overlapped_walk_ns = 0; ///< the same for an access that waits for no other
  unsigned page_shift = 12;
};

struct CoreCost {
  double instruction_ns = 0.25; ///< to dispatch one, while loads are under way
  unsigned rob_entries = 256;   ///< instructions in flight
  unsigned fill_buffers = 16;   ///< lines in flight; at most max_fill_buffers
  unsigned tlb_entries = 1536;
  unsigned tlb_ways = 12;
  /// Fraction of the loads without a known producer that wait for the load before.
  double chained_fraction = 0;
  double serial_ns_per_instruction = 0; ///< in addition; hides no latency
};
inline constexpr unsigned max_fill_buffers = 64;

struct SitePlacement {
  MemoryCost memories[2]; ///< near, far
  CoreCost core;
  std::vector<std::uint8_t> far_sites; ///< by site: 1 far; sites after the end are near
};

struct SiteCost {
  std::uint64_t reads = 0;      ///< lines read by loads and stores
  std::uint64_t prefetches = 0; ///< lines read by prefetchers
  std::uint64_t writes = 0;     ///< lines written
  std::uint64_t dependent = 0;  ///< of the reads: those whose address was loaded just before
  std::uint64_t walks = 0;
  double stall_ns = 0; ///< time that nothing retired because of it
};

struct Cost {
  double time_ns = 0;             ///< of the slowest thread
  double cpu_ns = 0;              ///< of all threads
  double stall_ns = 0;            ///< of all threads
  std::uint64_t instructions = 0; ///< that took time, of all threads
  std::vector<SiteCost> sites;
};

/// Migration traffic in addition to the program's lines, near and far.
struct Traffic {
  std::uint64_t read[2] = {0, 0};
  std::uint64_t written[2] = {0, 0};
};

/// The stall time of one placement, from records in their order.
class StallModel {
public:
  /// Errors: bad_input (invalid figures).
  static Result<StallModel> create(const SitePlacement& placing);

  /// `sites` has the site of each object.
  void take(std::span<const Record> records, std::span<const std::uint32_t> sites);

  /// One record in another memory than that of its site: `memory` is 0 near, 1 far.
  void take(const Record& record, std::uint32_t site, unsigned memory);

  /// Migration traffic that a record causes: it occupies the memories, and its thread waits for
  /// `kernel_ns`, the time of the kernel.
  void move(const Record& record, std::uint32_t site, const Traffic& traffic, double kernel_ns);

  /// Records are missing here: the instructions up to the next one take no time.
  void skip_records();

  /// `instructions`: of the whole run, if it has one thread (0: unknown).
  Cost finish(std::uint64_t instructions, std::size_t sites);

private:
  struct PendingLoad {
    std::uint64_t instruction;
    double back; ///< when its line is there, without serial time
    std::uint32_t site;
  };
  struct Return {
    double back = 0;                    ///< without serial time
    double line = 0;                    ///< when its fill buffer is free
    unsigned buffer = max_fill_buffers; ///< that it has, if any
  };
  static constexpr unsigned kept = 256; ///< returns that later records may depend on
  struct Thread {
    double now = 0;
    double serial = 0; ///< of it, what hides no latency
    std::uint64_t instruction = 0;
    std::uint64_t records = 0;
    std::uint64_t last_load = 0; ///< number of its record, from 1 on
    double chained_rest = 0;     ///< what is left over of chained_fraction
    bool has_skipped = false;
    std::vector<PendingLoad> loads; ///< in flight, a queue from `first` on
    std::size_t first = 0;
    double free_at[2] = {0, 0}; ///< when each memory can begin the thread's next line
    double core_free_at = 0;    ///< when the core can
    double buffer_free_ns[max_fill_buffers] = {}; ///< when each fill buffer is free
    Return returns[kept] = {};
  };
  /// Page numbers by set, the most recently used first.
  struct Tlb {
    std::vector<std::uint64_t> tags;
    std::uint64_t sets = 1;
    unsigned ways = 1;
    bool lookup(std::uint64_t tag);
  };

  explicit StallModel(const SitePlacement& placing);
  Thread& thread_of(const Record& record);
  SiteCost& cost_of(std::uint32_t site);
  void occupy(Thread& thread, unsigned memory, double ns);
  void occupy_line(Thread& thread, unsigned memory, bool written);
  double free_at(const Thread& thread, unsigned memory) const;
  void share_memories(Cost& cost);
  void bound_charges(Cost& cost);
  void execute(Thread& thread, std::uint64_t up_to);
  void retire(Thread& thread, std::uint64_t up_to);
  void drain(Thread& thread);
  void wait(Thread& thread, double until, std::uint32_t site);
  std::uint64_t parent_of(Thread& thread, const Record& record) const;
  double issue(Thread& thread, const Record& record, std::uint32_t site, unsigned memory);
  /// Most time by which stores and prefetches may be behind the program.
  double ahead_ns() const { return placing_.memories[0].latency_ns; }
  unsigned first_free_buffer(const Thread& thread) const;
  void stream(Thread& thread, unsigned memory, std::uint32_t site);

  SitePlacement placing_;
  std::vector<Thread> threads_;
  Tlb tlb_;
  double occupied_ns_[2] = {0, 0}; ///< each memory, by the lines of all threads
  std::vector<SiteCost> sites_;
  std::vector<double> max_ns_; ///< that a site can be charged
  double stall_ns_ = 0;
  std::uint64_t instructions_ = 0;
};

} // namespace nearfar::trace
