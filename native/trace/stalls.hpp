// What the misses of a trace cost a processor, site by site, for any placement of sites on two
// memories: a window of instructions, retired in order.
//
// Model          a load that misses sets out when the load that made its address is back, and holds
//                back what lies a window of instructions behind it until it is back itself. A store
//                does not, until it has waited near memory's latency for its place: buffers are as
//                long whatever memory is behind them. So many lines are in flight, and those of one
//                memory follow each other at its bandwidth, which is all that holds prefetches
//                back, near memory's latency ahead of the program. A lone thread does not stream
//                faster from two memories than from one: the lines of both take the same buffers of
//                its core, each for its memory's latency (Little's law). A page that the TLB, one for
//                both memories, does not know costs its memory's walk. Of the loads whose address
//                the trace does not know to be loaded, a share may be taken to wait for the load
//                before: a recorder that compares values sees no address that is computed out of
//                one. Interval analysis: Karkhanis and Smith, "A First-Order Superscalar Processor
//                Model", ISCA 2004; Eyerman et al., ACM TOCS 27(2), 2009.
// Hiding         while a load is under way, instructions behind it enter the window, at the speed at
//                which a core dispatches them. What else a program spends its time on (mispredicted
//                branches, nearer caches, long operations) adds to that and hides nothing: it cuts
//                the window or waits in it as the load does. It is held time, in which the clock
//                goes on and a load that is waited for does not come nearer.
// Threads        each has a clock of its own, which runs while the thread is busy. Their clocks
//                cannot be compared, so no thread waits for another's lines; but all of them
//                together take as long as their lines occupy a memory.
// Sites          a site is charged at most the latency and the page walk of each of its accesses;
//                what accesses wait beyond that, in queues, is shared out among the sites.
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
  double latency_ns = 100; ///< of a load on a page that the TLB knows
  double line_ns = 3;      ///< a line read, at its bandwidth
  double write_line_ns = 3;
  double walk_ns = 0; ///< of a page that the TLB does not know
  unsigned page_shift = 12;
};

struct CoreCost {
  double instruction_ns = 0.25; ///< to dispatch one, while loads are under way
  unsigned window = 256;        ///< instructions in flight
  unsigned parallelism = 16;    ///< lines in flight; at most max_parallel
  unsigned tlb_entries = 1536;
  unsigned tlb_ways = 12;
  double chained =
      0; ///< fraction of loads that wait for the load before, if the trace has no dependences
  double held_ns = 0; ///< what an instruction takes besides, which hides no latency
};
inline constexpr unsigned max_parallel = 64;

struct Placing {
  MemoryCost memories[2]; ///< near, far
  CoreCost core;
  std::vector<std::uint8_t> far_sites; ///< by site: 1 far; what lies behind the end is near
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

/// Takes records in their order and keeps the account of one placement.
class Costs {
public:
  /// Errors: bad_input (figures of no sense).
  static Result<Costs> create(const Placing& placing);

  /// `sites` has the site of each object.
  void take(std::span<const Record> records, std::span<const std::uint32_t> sites);

  /// One record that goes where its site does not say: `memory` is 0 near, 1 far.
  void take(const Record& record, std::uint32_t site, unsigned memory);

  /// What is moved because of a record: it occupies the memories, and holds the record's thread for
  /// `held_ns`, which is the kernel's time.
  void move(const Record& record, std::uint32_t site, const Traffic& traffic, double held_ns);

  /// Records are left out here: the instructions up to the next one take no time.
  void pass_by();

  /// The account, with the instructions behind the last record of a lone thread (0: unknown).
  Cost finish(std::uint64_t instructions, std::size_t sites);

private:
  struct Flight {
    std::uint64_t instruction;
    double back; ///< when its line is there, without held time
    std::uint32_t site;
  };
  struct Return {
    double back = 0;               ///< without held time
    double line = 0;               ///< when its place is free
    unsigned place = max_parallel; ///< among the lines in flight, if it has one
  };
  static constexpr unsigned kept = 256; ///< returns that later records may depend on
  struct Thread {
    double now = 0;
    double held = 0; ///< of it, what hides nothing
    std::uint64_t instruction = 0;
    std::uint64_t records = 0;
    std::uint64_t last_load = 0; ///< number of its record, from 1 on
    double chained = 0;          ///< what is left over of the share
    bool passed_by = false;
    std::vector<Flight> loads; ///< in flight, a queue from `first` on
    std::size_t first = 0;
    double free_at[2] = {0, 0};      ///< when each memory can begin the thread's next line
    double core_free_at = 0;         ///< when the core can
    double lines[max_parallel] = {}; ///< when each place for a line is free
    Return returns[kept] = {};
  };
  /// Pages by set, the youngest first.
  struct Pages {
    std::vector<std::uint64_t> tags;
    std::uint64_t sets = 1;
    unsigned ways = 1;
    bool knows(std::uint64_t tag);
  };

  explicit Costs(const Placing& placing);
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
  double send(Thread& thread, const Record& record, std::uint32_t site, unsigned memory);
  /// How far stores and prefetches may be behind the program.
  double ahead_ns() const { return placing_.memories[0].latency_ns; }
  unsigned first_free(const Thread& thread) const;
  void stream(Thread& thread, unsigned memory, std::uint32_t site);

  Placing placing_;
  std::vector<Thread> threads_;
  Pages pages_;
  double occupied_ns_[2] = {0, 0}; ///< each memory, by the lines of all threads
  std::vector<SiteCost> sites_;
  std::vector<double> max_ns_; ///< that a site can be charged
  double stall_ns_ = 0;
  std::uint64_t instructions_ = 0;
};

} // namespace nearfar::trace
